//! Undoes the changes in the journal, newest first, whether or not the agent runs.

use std::io::ErrorKind;
use std::time::Duration;

use eke_model::process::ProcessId;
use eke_model::step::{Step, ZramSpec};
use eke_model::units::{Bytes, PageSize};

use crate::backing;
use crate::headroom;
use crate::journal::record::{Phase, Undo};
use crate::journal::replay::Entry;
use crate::journal::{self, Journal};
use crate::knob;
use crate::process;
use crate::swap_area;
use crate::sys;
use crate::write::{locate, read_for, read_value, write_value};
use crate::zram;
use eke_linux::discard::Discard;
use eke_linux::error::{Error, Result};
use eke_linux::read;
use eke_linux::root::Root;
use eke_linux::zram::devices;
use rustix::process::Signal;

/// While another process swaps an area off, which may just be ending, swapoff(2) answers EINVAL: it is tried again for 5 s.
const SWAP_OFF_TRIES: u32 = 50;
const SWAP_OFF_PAUSE: Duration = Duration::from_millis(100);

/// The result of undoing one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The old state is restored; the sentence says how.
    Restored(String),
    /// There was nothing to do: the change never happened, or its object is gone.
    AsBefore,
    /// Somebody else changed it since, so it is left alone.
    Kept(String),
    /// It cannot be undone now, and stays in the journal.
    Blocked(String),
}

/// Undoes everything, newest first. Blocked and failed changes stay in the journal for the next time.
///
/// # Errors
/// Only if the journal itself fails; a change that cannot be undone is an outcome.
pub fn all(root: &Root, journal: &Journal) -> Result<Vec<(Entry, Outcome)>> {
    all_but(root, journal, |_| None)
}

/// The same, but changes with a reason in `blocked` are not undone.
///
/// # Errors
/// As in [`all`].
pub fn all_but(
    root: &Root,
    journal: &Journal,
    untouchable: impl Fn(&str) -> Option<String>,
) -> Result<Vec<(Entry, Outcome)>> {
    let mut outcomes: Vec<(Entry, Outcome)> = Vec::new();
    for entry in journal.entries()?.into_iter().rev() {
        let blocked = outcomes.iter().find(|(_, o)| matches!(o, Outcome::Blocked(_)));
        let outcome = match blocked {
            Some((newer, _)) if waits(&entry.intent.undo) => {
                Outcome::Blocked(format!("waits for the undo of: {}", newer.intent.step))
            }
            _ => match entry.made.as_deref().and_then(&untouchable) {
                Some(why) => Outcome::Blocked(why),
                None => one(root, journal, &entry).unwrap_or_else(|e| Outcome::Blocked(e.to_string())),
            },
        };
        outcomes.push((entry, outcome));
    }
    if !outcomes.iter().any(|(_, o)| matches!(o, Outcome::Blocked(_))) {
        journal.clear()?;
    }
    Ok(outcomes)
}

/// Whether its undo must wait for blocked newer changes: a module in use, or zswap, which must not return while zram
/// still holds pages.
pub fn waits(undo: &Undo) -> bool {
    match undo {
        Undo::UnloadModule { .. } => true,
        Undo::Write { knob, .. } => knob::find(knob).is_some_and(|k| k.undone_last),
        _ => false,
    }
}

/// The cgroup v1 groups that have `value` in an inherited setting; none if the setting is not inherited.
///
/// # Errors
/// The kernel's answer if the groups cannot be listed.
pub(crate) fn groups_with(root: &Root, inherited_by: Option<&str>, value: &str) -> Result<Vec<String>> {
    let Some(of_group) = inherited_by else { return Ok(Vec::new()) };
    let mut groups = read::groups_v1(root)?;
    groups.retain(|g| read_value(root, of_group, g).is_ok_and(|now| now == value));
    Ok(groups)
}

/// On cgroup v1 a new group inherits its parent's value. A group created while eke's value was set has inherited it,
/// and is restored, too. A group that had the value before keeps it; a missing group needs nothing.
fn give_back_inherited(
    root: &Root,
    inherited_by: Option<&str>,
    (old, new): (&str, &str),
    had_it: &[String],
) -> Result<()> {
    let Some(of_group) = inherited_by else { return Ok(()) };
    for group in groups_with(root, inherited_by, new)?.iter().filter(|g| !had_it.contains(g)) {
        match write_value(root, of_group, group, old) {
            Err(e) if !e.is_absent() => return Err(e),
            _ => {}
        }
    }
    Ok(())
}

/// Undoes one change and records the outcome. If the record cannot be written (no space left), the change is undone all
/// the same; another undo then finds nothing to do.
///
/// # Errors
/// The kernel's answer; the change then stays in the journal.
pub fn one(root: &Root, journal: &Journal, entry: &Entry) -> Result<Outcome> {
    let outcome = effect(root, entry)?;
    let _ = match &outcome {
        Outcome::Restored(_) | Outcome::AsBefore => journal.note(entry.seq, Phase::Reverted),
        Outcome::Kept(why) => journal.note(entry.seq, Phase::Kept { why: why.clone() }),
        Outcome::Blocked(_) => Ok(()),
    };
    Ok(outcome)
}

/// Undoes one change without recording it, for what must not wait for the journal's lock. The change stays in the journal until the
/// caller records it.
///
/// # Errors
/// The kernel's answer.
pub fn effect(root: &Root, entry: &Entry) -> Result<Outcome> {
    match &entry.intent.undo {
        Undo::Write { knob, target, old, new, had_it, beside } => {
            let inherited_by = knob::find(knob).and_then(|k| k.inherited_by);
            give_back_inherited(root, inherited_by, (old, new), had_it)?;
            write_old(root, (knob, target), (old, new), beside)
        }
        Undo::UnloadModule { name } => Ok(unload(root, name)),
        Undo::RemoveZram { before, expected } => remove_zram(root, entry, before, expected),
        Undo::SwapOff { path } => off(root, path),
        Undo::SwapOn { path, priority, discard } => on(root, path, *priority, *discard),
        Undo::Continue { processes } => goes_on(root, processes),
        Undo::Nothing => Ok(Outcome::AsBefore),
    }
}

/// Undoes a write for which the kernel took another value, `found`: it has raised or rounded what eke wrote (`nr_requests` is at least 4).
pub(crate) fn another_value(root: &Root, entry: &Entry, found: &str) -> Result<Outcome> {
    match &entry.intent.undo {
        Undo::Write { knob, target, old, beside, .. } => {
            write_old(root, (knob, target), (old, found), beside)
        }
        _ => effect(root, entry),
    }
}

/// A process that has ended meanwhile needs nothing.
fn goes_on(root: &Root, processes: &[ProcessId]) -> Result<Outcome> {
    Ok(match process::signal_all(root, processes, Signal::CONT)? {
        0 => Outcome::AsBefore,
        n => Outcome::Restored(format!("{n} stopped processes continue")),
    })
}

fn write_old(
    root: &Root,
    (name, target): (&str, &str),
    (old, new): (&str, &str),
    beside: &[(String, String)],
) -> Result<Outcome> {
    let (knob, path) = locate(root, name, target)?;
    let now = match read_for(root, name, target, new) {
        Err(e) if e.is_absent() => return Ok(Outcome::AsBefore),
        other => other?,
    };
    if knob.codec.same(&now, old) {
        return Ok(Outcome::AsBefore);
    }
    if !knob.codec.same(&now, new) {
        let path = path.display();
        return Ok(Outcome::Kept(format!(
            "{path} is {now}, but eke had set {new} (before: {old}): somebody else changed it since"
        )));
    }
    if knob.off_with.is_some_and(|(other, value)| read_value(root, other, target).is_ok_and(|is| is == value))
    {
        write_value(root, name, target, "0")?;
        return Ok(Outcome::Restored(format!(
            "{} is 0: this disk's scheduler of today switches it off",
            path.display()
        )));
    }
    if !(old == "0" && knob.yields_at_zero) {
        write_value(root, name, target, old)?;
    }
    for (other, was) in beside {
        write_beside(root, other, target, was)?;
    }
    Ok(Outcome::Restored(format!("{} is {old} again", path.display())))
}

/// Restores a setting that changed with another one. A missing one (another scheduler's) is ignored.
fn write_beside(root: &Root, name: &str, target: &str, was: &str) -> Result<()> {
    let (knob, _) = locate(root, name, target)?;
    if was == "0" && knob.yields_at_zero {
        return Ok(());
    }
    match read_value(root, name, target) {
        Ok(now) if now != was => write_value(root, name, target, was),
        Err(e) if !e.is_absent() => Err(e),
        _ => Ok(()),
    }
}

/// A module's directory while it is loaded. The kernel writes underscores there.
pub(crate) fn module_dir(name: &str) -> String {
    format!("sys/module/{}", name.replace('-', "_"))
}

/// A module that something else uses by now stays loaded. zram takes its devices with it, also one with data, if nobody has that open just then.
fn unload(root: &Root, name: &str) -> Outcome {
    if !root.exists(module_dir(name)) {
        return Outcome::AsBefore;
    }
    if let Some(device) = others_with_data(root).filter(|_| name == "zram") {
        return Outcome::Kept(format!("the module zram stays loaded: {device} is somebody else's"));
    }
    match sys::of(root).unload_module(name) {
        Ok(()) => Outcome::Restored(format!("the module {name} is unloaded")),
        Err(e) => Outcome::Kept(format!("the module {name} stays loaded: {e}")),
    }
}

/// A zram device that eke did not make and that has a size: somebody may keep data there.
fn others_with_data(root: &Root) -> Option<String> {
    let entries = journal::entries(root).unwrap_or_default();
    let is_own = |name: &String| entries.iter().any(|entry| entry.made.as_ref() == Some(name));
    let mut others = devices(root).unwrap_or_default().into_iter().filter(|name| !is_own(name));
    others.find(|name| size_of(root, name).is_some_and(|size| size > Bytes(0)))
}

fn remove_zram(root: &Root, entry: &Entry, before: &[String], expected: &str) -> Result<Outcome> {
    if matches!(&entry.intent.step, Step::AddZram(spec) if spec.is_encrypted()) {
        backing::remove(root, entry.made.as_deref().unwrap_or(expected))?;
    }
    // A device without a recorded name was never configured, so it has no dictionary.
    let forget = || entry.made.as_deref().map_or(Ok(()), |name| zram::forget_dictionary(root, name));
    let Some(name) = device_to_remove(root, entry.made.as_deref(), before, expected)? else {
        forget()?;
        return Ok(Outcome::AsBefore);
    };
    if let Some(why) = somebody_elses(root, &name, &entry.intent.step) {
        forget()?;
        return Ok(Outcome::Kept(why));
    }
    if let Some(why) = swap_off(root, &format!("/dev/{name}"))? {
        return Ok(Outcome::Blocked(why));
    }
    zram::remove(root, &name)?;
    Ok(Outcome::Restored(format!("{name} is removed")))
}

/// The device that this change added. If a crash came before its name was recorded, it is the device with the expected
/// number, if that has no size yet; a device with a size is somebody else's.
fn device_to_remove(
    root: &Root,
    made: Option<&str>,
    before: &[String],
    expected: &str,
) -> Result<Option<String>> {
    let now = devices(root)?;
    let name = made.unwrap_or(expected);
    let there = now.iter().any(|n| n == name) && !before.iter().any(|n| n == name);
    let ours = made.is_some() || read_value(root, "zram.disksize", name).is_ok_and(|size| size == "0");
    Ok((there && ours).then(|| name.to_owned()))
}

/// Why a device is not eke's: eke's has the size that eke set (the kernel rounds up to whole pages), or none yet. A
/// device with another size has reused the number of one that was removed by hand.
pub(crate) fn somebody_elses(root: &Root, name: &str, step: &Step) -> Option<String> {
    let Step::AddZram(spec) = step else { return None };
    let size = size_of(root, name)?;
    let ours = size == Bytes(0) || is_size(size, spec);
    (!ours).then(|| {
        format!("{name} has {size}, but eke had created it with {}: it is somebody else's", spec.disksize)
    })
}

fn size_of(root: &Root, name: &str) -> Option<Bytes> {
    read_value(root, "zram.disksize", name).ok()?.parse().ok().map(Bytes)
}

fn is_size(size: Bytes, spec: &ZramSpec) -> bool {
    size.0.abs_diff(spec.disksize.0) < PageSize::LARGEST.bytes()
}

/// Whether a device exists with the size that eke set: not one that was removed or reset by hand, nor one that has reused its number.
pub fn has_its_size(root: &Root, name: &str, spec: &ZramSpec) -> bool {
    size_of(root, name).is_some_and(|size| is_size(size, spec))
}

fn off(root: &Root, path: &str) -> Result<Outcome> {
    let was_on = read::swap_at(root, path)?.is_some();
    Ok(match swap_off(root, path)? {
        Some(why) => Outcome::Blocked(why),
        None if was_on => Outcome::Restored(format!("{path} is swapped off")),
        None => Outcome::AsBefore,
    })
}

fn on(root: &Root, path: &str, priority: Option<i16>, discard: Option<Discard>) -> Result<Outcome> {
    if read::swap_at(root, path)?.is_some() {
        return Ok(Outcome::AsBefore);
    }
    match swap_area::swap_on(root, path, priority, discard) {
        Ok(()) => Ok(Outcome::Restored(format!("{path} is swapped on again"))),
        Err(e) => no_area(path, &e).map(Outcome::Kept).ok_or(e),
    }
}

/// Why there is nothing to swap on: the device or file is gone, or has no swap header any more (EINVAL), as a zram device that was reset.
fn no_area(path: &str, error: &Error) -> Option<String> {
    let Error::Io { source, .. } = error else { return None };
    let what = match source.kind() {
        ErrorKind::NotFound => "is gone",
        ErrorKind::InvalidInput => "has no swap area any more",
        _ => return None,
    };
    Some(format!("{path} {what}, so it stays off; it was swap before eke"))
}

/// Swaps an area off if it is on and there is room for its pages; returns the reason if there is not.
///
/// # Errors
/// The kernel's answer.
pub fn swap_off(root: &Root, path: &str) -> Result<Option<String>> {
    let Some(area) = read::swap_at(root, path)? else {
        return Ok(None);
    };
    if let Some(why) = headroom::check(root, &area)? {
        return Ok(Some(why));
    }
    let at = root.path(path);
    let mut answer = sys::of(root).swapoff(&at);
    for _ in 1..SWAP_OFF_TRIES {
        let is_leaving = answer.as_ref().is_err_and(|e| e.kind() == ErrorKind::InvalidInput);
        if !is_leaving || read::swap_at(root, path)?.is_none() {
            break;
        }
        root.sleep(SWAP_OFF_PAUSE);
        answer = sys::of(root).swapoff(&at);
    }
    match answer {
        Err(_) if read::swap_at(root, path)?.is_none() => Ok(None),
        answer => answer.map(|()| None).map_err(|e| Error::io("swap off", &at, e)),
    }
}
