//! Decisions as writes to the kernel.

use std::time::Instant;

use eke_apply::session::{AppliedStep, Session, trigger};
use eke_apply::{journal, state};
use eke_linux::{Error, Root, read};
use eke_model::step::{PlannedStep, Step, ZramSpec};
use eke_model::units::Bytes;
use rustix::io::Errno;

use super::action::{Action, Age};
use super::ledger::{Ledger, UNIT};

/// Where the wear ledger is: it outlives the boot, as the disk's wear does.
pub const LEDGER: &str = "var/lib/eke/wear.json";
/// Less than this is the machine's own coming and going, not a round's doing.
const NOISE: Bytes = Bytes(64 << 10);

/// What became of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Brought {
        /// Memory that the pool takes less.
        freed: Bytes,
        /// What went to the disk.
        written: Bytes,
        /// How long the kernel took, in milliseconds.
        took_ms: u64,
    },
    /// EAGAIN or EBUSY: another post-processing is under way.
    Later,
    /// EINVAL and its like: this kernel or device cannot.
    Unsupported,
    /// Anything else, as a part of a sentence.
    Failed(String),
}

/// The devices among `names` that eke made, by the journal, oldest first. None where it cannot be read.
pub fn made_by_eke(root: &Root, names: &[String]) -> Vec<(String, ZramSpec)> {
    let entries = journal::entries(root).unwrap_or_default();
    let made = entries.into_iter().filter_map(|entry| match entry.intent.step {
        Step::AddZram(spec) => Some((entry.made?, spec)),
        _ => None,
    });
    made.filter(|(name, spec)| spec.swap_priority.is_some() && names.contains(name)).collect()
}

/// The wear ledger; one that is not there or not readable as such is empty.
pub fn ledger(root: &Root) -> Ledger {
    state::load(root, LEDGER).unwrap_or_default()
}

/// Adds the device in eke's name, journaled, and gives its path; `None` while another eke changes the machine: the agent
/// does not stand still for it. While the journal holds nothing (somebody said
/// `eke down`), nothing is added.
///
/// # Errors
/// The kernel's answer; nothing is left then.
pub fn grow(root: &Root, planned: &PlannedStep) -> Result<Option<String>, Error> {
    let Ok(mut session) = Session::try_open(root, "swap") else { return Ok(None) };
    if session.journal().entries()?.is_empty() {
        return Err(Error::Refused("no change of eke is in force any more".into()));
    }
    match session.apply(planned)? {
        AppliedStep::Made { device: Some(name), .. } => Ok(Some(format!("/dev/{name}"))),
        _ => Err(Error::Refused("the kernel gave no device".into())),
    }
}

/// Performs one action on `day`.
pub fn perform(root: &Root, action: &Action, day: u64) -> Outcome {
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

fn nothing() -> Outcome {
    Outcome::Brought { freed: Bytes(0), written: Bytes(0), took_ms: 0 }
}

fn recompress(root: &Root, device: &str, value: &str) -> Result<Outcome, Error> {
    let before = pool(root, device);
    let started = Instant::now();
    trigger(root, "zram.recompress", device, value)?;
    Ok(Outcome::Brought {
        freed: less(before, pool(root, device)),
        written: Bytes(0),
        took_ms: millis(started),
    })
}

/// The limit stands in the ledger before the kernel may write, and is corrected by what the kernel counted.
/// The plain word is understood by every kernel, those with `type=` (Linux 6.16) too.
fn write_back(root: &Root, device: &str, kind: &str, limit_units: u64, day: u64) -> Result<Outcome, Error> {
    let (memory_before, units_before) = (pool(root, device), units_written(root, device));
    trigger(root, "zram.writeback_limit", device, &limit_units.to_string())?;
    trigger(root, "zram.writeback_limit_enable", device, "1")?;
    let charged = ledger(root).charged(day, limit_units);
    state::save(root, LEDGER, &charged)?;
    let started = Instant::now();
    let answer = trigger(root, "zram.writeback", device, kind);
    let took_ms = millis(started);
    let units =
        units_before.zip(units_written(root, device)).map(|(before, after)| after.saturating_sub(before));
    state::save(root, LEDGER, &charged.settled(limit_units, units.unwrap_or(limit_units)))?;
    let is_limit = answer.as_ref().is_err_and(|e| errno(e) == Some(Errno::IO))
        && units.is_some_and(|n| n >= limit_units);
    // At the limit the kernel answers EIO although all went well.
    if !is_limit {
        answer?;
    }
    let written = Bytes(units.unwrap_or(0) * UNIT);
    Ok(Outcome::Brought { freed: less(memory_before, pool(root, device)), written, took_ms })
}

fn classified(e: &Error) -> Outcome {
    match errno(e) {
        Some(Errno::AGAIN | Errno::BUSY) => Outcome::Later,
        Some(Errno::INVAL | Errno::NODEV | Errno::NOENT | Errno::OPNOTSUPP) => Outcome::Unsupported,
        _ => Outcome::Failed(e.to_string()),
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
