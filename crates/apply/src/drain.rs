//! Swaps a zram device off and removes it while the plan stays applied: another one replaces it, or the machine shuts down.

use std::io::ErrorKind;

use eke_linux::error::{Error, Result};
use eke_linux::read;
use eke_linux::root::Root;
use eke_model::step::Step;

use crate::headroom;
use crate::journal::record::Phase;
use crate::journal::replay::Entry;
use crate::journal::{self, Journal};
use crate::revert::{self, Outcome};
use crate::swapoff::Interrupt;
use crate::sys;

/// Swaps `device` of `owner` off and removes it. The journal has that first: if the process dies in between, nobody swaps the device on again, and the next
/// call or `down` removes it. While its pages are loaded the journal is nobody's, so that the guard can act, and `interrupt` leaves it swap. Returns why it
/// stays, if its pages have no room or the swapoff was interrupted.
///
/// # Errors
/// The kernel's answer, or `Refused` for a device that this owner did not swap on. `Locked` while another eke changes the machine; a device that was swapped
/// off by then is removed by the next call.
pub fn drain(root: &Root, owner: &str, device: &str, interrupt: &Interrupt) -> Result<Option<String>> {
    let entry = match begin(root, owner, device)? {
        Begun::Noted(entry) => entry,
        Begun::NoRoom(why) => return Ok(Some(why)),
    };
    let path = format!("/dev/{device}");
    let swapped_off = match read::swap_at(root, &path)? {
        Some(_) => swap_off(root, &path, interrupt),
        None => Ok(()),
    };
    end(root, &entry, &path, swapped_off)
}

/// Drains each device of `owner` behind which a file is: as long as such a device exists, the file system of the file cannot be unmounted. Returns those that
/// stay, each with the reason.
///
/// # Errors
/// The journal cannot be read.
pub fn files(root: &Root, owner: &str) -> Result<Vec<(String, String)>> {
    let with_file = |e: &Entry| {
        let is_it = matches!(&e.intent.step, Step::AddZram(spec) if spec.backing_file.is_some());
        e.made.clone().filter(|_| is_it && is_swap(e) && e.intent.owner == owner)
    };
    let devices: Vec<String> = journal::entries(root)?.iter().filter_map(with_file).collect();
    let stays = |device: String| match drain(root, owner, &device, &Interrupt::default()) {
        Ok(None) => None,
        Ok(Some(why)) => Some((device, why)),
        Err(e) => Some((device, e.to_string())),
    };
    Ok(devices.into_iter().filter_map(stays).collect())
}

enum Begun {
    Noted(Box<Entry>),
    NoRoom(String),
}

fn begin(root: &Root, owner: &str, device: &str) -> Result<Begun> {
    let journal = Journal::try_open(root)?;
    let is_it = |e: &Entry| e.intent.owner == owner && is_swap(e) && e.made.as_deref() == Some(device);
    let Some(entry) = journal.entries()?.into_iter().rev().find(is_it) else {
        return Err(Error::Refused(format!("{device} is not a swap device that eke created")));
    };
    if let Some(why) = revert::somebody_elses(root, device, &entry.intent.step) {
        return Err(Error::Refused(why));
    }
    if let Some(area) = read::swap_at(root, &format!("/dev/{device}"))? {
        if let Some(why) = headroom::check(root, &area)? {
            return Ok(Begun::NoRoom(why));
        }
    }
    journal.note(entry.seq, Phase::Done { draining: true })?;
    Ok(Begun::Noted(Box::new(entry)))
}

/// Whether the change adds a device with swap on it.
fn is_swap(entry: &Entry) -> bool {
    matches!(&entry.intent.step, Step::AddZram(spec) if spec.swap_priority.is_some())
}

fn swap_off(root: &Root, path: &str, interrupt: &Interrupt) -> Result<()> {
    let at = root.path(path);
    sys::of(root).swapoff_until(&at, interrupt).map_err(|e| Error::io("swap off", &at, e))
}

fn end(root: &Root, begun: &Entry, path: &str, swapped_off: Result<()>) -> Result<Option<String>> {
    let journal = Journal::open(root)?;
    let is_it = |e: &Entry| e.draining && e.seq == begun.seq && e.intent == begun.intent;
    // Another eke may have undone it meanwhile.
    let Some(entry) = journal.entries()?.into_iter().find(is_it) else { return Ok(None) };
    if read::swap_at(root, path)?.is_some() {
        journal.note(entry.seq, Phase::Done { draining: false })?;
        return match swapped_off {
            Err(e) if is_interrupted(&e) => Ok(Some("its swapoff was interrupted".into())),
            Err(e) => Err(e),
            Ok(()) => Ok(Some("it was swapped on again".into())),
        };
    }
    let removed = revert::one(root, &journal, &entry)?;
    Ok(if let Outcome::Blocked(why) = removed { Some(why) } else { None })
}

fn is_interrupted(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == ErrorKind::Interrupted)
}
