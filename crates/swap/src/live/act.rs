//! Performs decisions through the kernel.

use std::time::Instant;

use eke_apply::revert::has_its_size;
use eke_apply::session::{AppliedStep, Session, trigger};
use eke_apply::swapoff::Interrupt;
use eke_apply::swapped_off::{self, Off};
use eke_apply::{drain as away, journal, state, zram};
use eke_linux::{Error, Root, read};
use eke_model::step::{PlannedStep, Step, ZramSpec};
use eke_model::units::Bytes;
use rustix::io::Errno;

use super::action::{Action, Age};
use super::generations;
use super::ledger::{Ledger, UNIT};
use super::proactive::{self, Request};
use crate::decide::REMEDY;
use crate::measure::Dictionary;

/// The path of the wear ledger, which outlives the boot as the disk's wear does.
pub const LEDGER: &str = "var/lib/eke/wear.json";
/// The machine's nodes, each with memory and CPUs of its own.
const NODES: &str = "sys/devices/system/node";
/// A smaller difference of the pool is noise, not the effect of a round.
const NOISE: Bytes = Bytes(64 << 10);

/// The outcome of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionOutcome {
    /// It was done.
    Done {
        /// The decrease of the pool's memory.
        freed: Bytes,
        /// Bytes written to the disk.
        written: Bytes,
        /// The kernel's time, in milliseconds.
        took_ms: u64,
    },
    /// EAGAIN or EBUSY: another post-processing runs.
    Later,
    /// EINVAL and the like: this kernel or device does not support it.
    Unsupported,
    /// Any other error, as a message.
    Failed(String),
}

/// The devices among `names` that eke made, by the journal and their size, oldest first. Empty if it cannot be read.
pub fn made_by_eke(root: &Root, names: &[String]) -> Vec<(String, ZramSpec)> {
    let entries = journal::entries(root).unwrap_or_default();
    let made = entries.into_iter().filter_map(|entry| match entry.intent.step {
        Step::AddZram(spec) => Some((entry.made?, spec)),
        _ => None,
    });
    let own = made.filter(|(name, spec)| spec.swap_priority.is_some() && names.contains(name));
    own.filter(|(name, spec)| has_its_size(root, name, spec)).collect()
}

/// The newest kept dictionary of these devices, if there is one and it still is there.
pub fn dictionary(root: &Root, own: &[(String, ZramSpec)]) -> Option<Dictionary> {
    let (_, newest) = generations::split(own);
    let (device, _) = newest.first().filter(|(_, spec)| spec.dictionary.is_some())?;
    Dictionary::kept(root, device).ok()
}

/// Removes the copies of older dictionaries, which nobody reads any more and nobody keeps in RAM.
pub fn forget_older_dictionaries(root: &Root, own: &[(String, ZramSpec)]) {
    let (older, _) = generations::split(own);
    for (device, _) in older {
        // What cannot be removed goes with its device.
        let _ = zram::forget_dictionary(root, device);
    }
}

/// The devices that eke made and somebody else swapped off or removed. Empty if the journal cannot be read.
pub fn swapped_off(root: &Root) -> Vec<Off> {
    swapped_off::devices(root, REMEDY).unwrap_or_default()
}

/// The wear ledger, corrected if the clock was ahead; empty if it is missing or unreadable.
pub fn ledger(root: &Root, day: u64) -> Ledger {
    let ledger: Ledger = state::load(root, LEDGER).unwrap_or_default();
    let Some(corrected) = ledger.set_back(day) else { return ledger };
    // What cannot be saved now is corrected again at the next tick.
    let _ = state::save(root, LEDGER, &corrected);
    corrected
}

/// Adds the device, journaled, and returns its path. `None` while another eke changes the machine, since the agent must not wait for it.
///
/// # Errors
/// The journal is empty (after `eke down`), or the kernel's answer; no device is left then.
pub fn grow(root: &Root, planned: &PlannedStep) -> Result<Option<String>, Error> {
    let Ok(mut session) = Session::try_open(root, REMEDY) else { return Ok(None) };
    if session.journal().entries()?.is_empty() {
        return Err(Error::Refused("eke's plan is not applied any more".into()));
    }
    match session.apply(planned)? {
        AppliedStep::Made { device: Some(name), .. } => Ok(Some(format!("/dev/{name}"))),
        _ => Err(Error::Refused("the kernel returned no device".into())),
    }
}

/// Swaps a device of eke's off and removes it, journaled; the reason if it stays. Takes as long as its pages do, or until it is interrupted.
///
/// # Errors
/// `Locked` while another eke changes the machine, or the kernel's answer.
pub fn drain(root: &Root, device: &str, interrupt: &Interrupt) -> Result<Option<String>, Error> {
    away::drain(root, REMEDY, device, interrupt)
}

/// The devices that [`drain`] swapped off and did not remove, since its process died. Empty if the journal cannot be read.
pub fn half_gone(root: &Root) -> Vec<String> {
    let entries = journal::entries(root).unwrap_or_default().into_iter();
    let draining = entries.filter(|entry| entry.draining).filter_map(|entry| entry.made);
    let is_off =
        |name: &String| read::swap_at(root, &format!("/dev/{name}")).is_ok_and(|area| area.is_none());
    draining.filter(is_off).collect()
}

/// Performs one action on `day`.
pub fn perform(root: &Root, action: &Action, day: u64) -> ActionOutcome {
    let done = match action {
        Action::MarkIdle { device, age: Age::All } => {
            trigger(root, "zram.idle", device, "all").map(|()| nothing())
        }
        Action::MarkIdle { device, age: Age::Seconds(s) } => {
            trigger(root, "zram.idle", device, &s.to_string()).map(|()| nothing())
        }
        Action::Recompress { device, kind, priority, max_pages } => recompress(
            root,
            device,
            &format!("type={} priority={priority} max_pages={max_pages}", kind.word()),
        ),
        Action::WriteBack { device, kind, limit_units } => {
            write_back(root, device, kind.word(), *limit_units, day)
        }
    };
    done.unwrap_or_else(|e| classified(&e))
}

fn nothing() -> ActionOutcome {
    ActionOutcome::Done { freed: Bytes(0), written: Bytes(0), took_ms: 0 }
}

fn recompress(root: &Root, device: &str, value: &str) -> Result<ActionOutcome, Error> {
    let before = pool(root, device);
    let started = Instant::now();
    trigger(root, "zram.recompress", device, value)?;
    Ok(ActionOutcome::Done {
        freed: less(before, pool(root, device)),
        written: Bytes(0),
        took_ms: millis(started),
    })
}

/// Charges the limit to the ledger before the kernel may write, and corrects it by the kernel's counter. Every kernel accepts the plain word, also
/// those with `type=` (Linux 6.16).
fn write_back(
    root: &Root,
    device: &str,
    kind: &str,
    limit_units: u64,
    day: u64,
) -> Result<ActionOutcome, Error> {
    let (memory_before, units_before) = (pool(root, device), units_written(root, device));
    trigger(root, "zram.writeback_limit", device, &limit_units.to_string())?;
    trigger(root, "zram.writeback_limit_enable", device, "1")?;
    let charged = ledger(root, day).charged(day, limit_units);
    state::save(root, LEDGER, &charged)?;
    let started = Instant::now();
    let answer = trigger(root, "zram.writeback", device, kind);
    let took_ms = millis(started);
    let units =
        units_before.zip(units_written(root, device)).map(|(before, after)| after.saturating_sub(before));
    state::save(root, LEDGER, &charged.settled(limit_units, units.unwrap_or(limit_units)))?;
    let is_limit = answer.as_ref().is_err_and(|e| errno(e) == Some(Errno::IO))
        && units.is_some_and(|n| n >= limit_units);
    // at the limit the kernel answers EIO, which is no error
    if !is_limit {
        answer?;
    }
    let written = Bytes(units.unwrap_or(0) * UNIT);
    Ok(ActionOutcome::Done { freed: less(memory_before, pool(root, device)), written, took_ms })
}

/// Has the kernel reclaim some memory of the machine: by its root group, else by its nodes, each an equal part.
pub fn reclaim(root: &Root, request: Request) -> proactive::Outcome {
    let ask = |name, target: &str, bytes: u64| {
        trigger(root, name, target, &format!("{bytes}{}", request.form.word()))
    };
    let done = if root.exists("sys/fs/cgroup/memory.reclaim") {
        ask("memory.reclaim", "", request.bytes.0)
    } else {
        let has = |node: &String| root.exists(format!("{NODES}/{node}/reclaim"));
        let nodes: Vec<String> = root.list(NODES).unwrap_or_default().into_iter().filter(has).collect();
        if nodes.is_empty() {
            return proactive::Outcome::Absent;
        }
        nodes.iter().try_for_each(|node| ask("node.reclaim", node, request.bytes.0 / nodes.len() as u64))
    };
    match done {
        Ok(()) => proactive::Outcome::Reclaimed,
        Err(e) => match errno(&e) {
            Some(Errno::AGAIN | Errno::INTR) => proactive::Outcome::Fewer,
            Some(Errno::INVAL) => proactive::Outcome::UnknownForm,
            _ => proactive::Outcome::Failed(e.to_string()),
        },
    }
}

fn classified(e: &Error) -> ActionOutcome {
    match errno(e) {
        Some(Errno::AGAIN | Errno::BUSY) => ActionOutcome::Later,
        Some(Errno::INVAL | Errno::NODEV | Errno::NOENT | Errno::OPNOTSUPP) => ActionOutcome::Unsupported,
        _ => ActionOutcome::Failed(e.to_string()),
    }
}

fn errno(e: &Error) -> Option<Errno> {
    match e {
        Error::Io { source, .. } => Errno::from_io_error(source),
        _ => None,
    }
}

fn pool(root: &Root, device: &str) -> Bytes {
    read::zram_stat(root, device).map_or(Bytes(0), |stat| stat.mem_used)
}

/// The third number of `bd_stat`: bd_count bd_reads bd_writes, in units of [`UNIT`].
fn units_written(root: &Root, device: &str) -> Option<u64> {
    root.read(format!("sys/block/{device}/bd_stat")).ok()?.split_whitespace().nth(2)?.parse().ok()
}

fn less(before: Bytes, after: Bytes) -> Bytes {
    let less = before.saturating_sub(after);
    if less < NOISE { Bytes(0) } else { less }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use eke_testkit::fake_kernel::FakeKernel;

    use super::*;

    /// The clock was ahead on a day that used its budget up.
    #[test]
    fn a_wrong_date_stops_writeback_for_a_day_at_most() {
        let machine = FakeKernel::new();
        let (root, budget) = (machine.root(), Bytes::mib(1));
        let ahead = Ledger { day: 99_999, written: budget };
        state::save(&root, LEDGER, &ahead).unwrap();
        assert_eq!(ledger(&root, 30_000).left_units(30_000, budget), 0);
        assert_eq!(ledger(&root, 30_001).left_units(30_001, budget), 256);
    }
}
