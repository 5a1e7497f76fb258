//! The journal: each change of the machine, its inverse, its owner and its reason, recorded before it happens.
//!
//! `run/eke/journal.jsonl`, mode 0600, append-only, one `write(2)` for each record. The recorded state ends with the
//! boot, and so does `/run`; the boot's id is checked all the same. The journal must survive the death of a process but
//! not of the machine, so records are not synced.
//!
//! - [`record`]: the format of a record
//! - [`replay`]: which changes are still in force

pub mod record;
pub mod replay;

use std::fs::OpenOptions;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use crate::sys;
use eke_linux::error::{Error, Result};
use eke_linux::root::{RUN_DIR, Root};
use record::{Phase, Record};
use replay::Entry;

const FILE: &str = "run/eke/journal.jsonl";
const LOCK: &str = "run/eke/lock";
/// How long to wait for another eke that changes the machine: 5 s.
const LOCK_TRIES: u32 = 50;
/// A longer journal is written anew, without what is undone: each stop of the guard adds records while a plan is applied.
const LONG_BYTES: usize = 256 << 10;
/// Larger sequence numbers than any journal has are not eke's, and would leave no room for the next ones.
const MOST_SEQ: u64 = 1 << 48;
const LOCK_PAUSE: Duration = Duration::from_millis(100);

/// The open journal. While it is open, no other process changes the machine through eke, except that the guard lets continue what it
/// stopped.
#[derive(Debug)]
pub struct Journal {
    root: Root,
    next_seq: u64,
    /// Whether the file begins with the boot's line, which the first change adds: to look at a machine writes nothing.
    begun: AtomicBool,
    /// Whether the file may end with a partial line.
    torn: AtomicBool,
    _lock: Lock,
}

/// The lock on the machine, released explicitly when dropped. Closing the descriptor is not enough: a child that
/// another thread is just starting may have a copy, which keeps the lock until the child calls execve(2) (flock(2)).
#[derive(Debug)]
struct Lock(OwnedFd);

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

impl Journal {
    /// Opens the journal of this boot, waiting up to 5 s for another eke.
    ///
    /// # Errors
    /// `Locked` while another process has it open; the kernel's answer if `run/eke` cannot be created (not root).
    pub fn open(root: &Root) -> Result<Self> {
        Self::open_within(root, LOCK_TRIES)
    }

    /// The same without waiting.
    ///
    /// # Errors
    /// As in [`Journal::open`], at once.
    pub fn try_open(root: &Root) -> Result<Self> {
        Self::open_within(root, 1)
    }

    fn open_within(root: &Root, tries: u32) -> Result<Self> {
        let dir = root.path(RUN_DIR);
        sys::of(root).create_dir(&dir, 0o755).map_err(|e| Error::io("make", &dir, e))?;
        let lock = lock(root, tries)?;
        let records = read(root)?;
        let (begun, torn) = (AtomicBool::new(false), AtomicBool::new(false));
        let mut journal = Self { root: root.clone(), next_seq: 1, begun, torn, _lock: lock };
        match records.iter().map(|r| r.seq).max() {
            Some(last) => {
                journal.begun = AtomicBool::new(true);
                journal.next_seq = last + 1;
                let text = read_text(root)?;
                journal.torn = AtomicBool::new(!text.ends_with('\n'));
                if text.len() > LONG_BYTES {
                    journal.compact(&records, text.len());
                }
            }
            None => journal.clear()?,
        }
        Ok(journal)
    }

    /// Replaces the file as a whole, so a crash leaves the long one or the short one. So does a full file system.
    fn compact(&mut self, records: &[Record], length: usize) {
        let lines =
            replay::compacted(records).iter().map(|record| record.to_line() + "\n").collect::<String>();
        let path = self.root.path(FILE);
        let is_worth_it = lines.len() <= length / 2;
        if is_worth_it && sys::of(&self.root).replace(&path, lines.as_bytes(), 0o600).is_ok() {
            self.torn = AtomicBool::new(false);
        }
    }

    /// Records an intent and returns its sequence number.
    ///
    /// # Errors
    /// The kernel's answer; the change must then not be made.
    pub fn intend(&mut self, intent: record::Intent) -> Result<u64> {
        if !self.begun.load(Ordering::Relaxed) {
            let boot_id = boot_id_of(&self.root);
            self.append(0, Phase::Begun { boot_id, version: record::VERSION })?;
            self.begun.store(true, Ordering::Relaxed);
        }
        let seq = self.next_seq;
        self.next_seq += 1;
        self.append(seq, Phase::Intent(Box::new(intent)))?;
        Ok(seq)
    }

    /// Records a phase of change `seq`.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn note(&self, seq: u64, phase: Phase) -> Result<()> {
        self.append(seq, phase)
    }

    /// The changes in force, oldest first.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        entries(&self.root)
    }

    /// Removes the journal if no change is in force.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn clear(&self) -> Result<()> {
        let path = self.root.path(FILE);
        match sys::of(&self.root).remove(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", &path, e)),
            _ => {
                self.begun.store(false, Ordering::Relaxed);
                self.torn.store(false, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// A crash or a full file system can leave a partial line. The next record first ends that line: appended to it, it
    /// would be lost, too.
    fn append(&self, seq: u64, phase: Phase) -> Result<()> {
        let path = self.root.path(FILE);
        let start = if self.torn.load(Ordering::Relaxed) { "\n" } else { "" };
        let line = format!("{start}{}\n", Record { seq, phase }.to_line());
        let appended = sys::of(&self.root).append(&path, line.as_bytes());
        self.torn.store(appended.is_err(), Ordering::Relaxed);
        appended.map_err(|e| Error::io("append to", &path, e))
    }
}

/// The changes in force in the journal of this boot, oldest first. Needs no lock.
///
/// # Errors
/// The kernel's answer (only root may read it).
pub fn entries(root: &Root) -> Result<Vec<Entry>> {
    Ok(replay::in_force(&read(root)?))
}

fn read_text(root: &Root) -> Result<String> {
    Ok(root.read_if_exists(FILE)?.unwrap_or_default())
}

/// The records of this boot; none if the file is of another one, whatever version of eke wrote it.
fn read(root: &Root) -> Result<Vec<Record>> {
    let text = read_text(root)?;
    if is_of_another_boot(root, &text) {
        return Ok(Vec::new());
    }
    let records: std::result::Result<Vec<_>, String> =
        text.lines().filter_map(|line| Record::from_line(line).transpose()).collect();
    let records = records.map_err(|e| unknown(root, &e))?;
    match records.first().map(|r| &r.phase) {
        Some(Phase::Begun { version, .. }) if *version != record::VERSION => {
            Err(unknown(root, &format!("version {version}")))
        }
        Some(phase) if !matches!(phase, Phase::Begun { .. }) => Err(headless(root)),
        _ if records.iter().any(|r| r.seq >= MOST_SEQ) => Err(unknown(root, "an impossible sequence number")),
        _ => Ok(records),
    }
}

fn is_of_another_boot(root: &Root, text: &str) -> bool {
    let first = text.lines().next().and_then(|line| Record::from_line(line).ok().flatten());
    first.is_some_and(|record| match record.phase {
        Phase::Begun { boot_id, .. } => boot_id != boot_id_of(root),
        _ => false,
    })
}

/// An error, because changes that are not understood must not be forgotten.
fn unknown(root: &Root, what: &str) -> Error {
    let path = root.path(FILE);
    Error::Refused(format!(
        "{} was written by another version of eke, or is damaged ({what}): use that version for `down`, or restart the machine; if its changes are undone by hand, remove the file",
        path.display()
    ))
}

/// An error, because changes whose boot is not known must be neither undone nor forgotten.
fn headless(root: &Root) -> Error {
    Error::Refused(format!(
        "{} is damaged: its first line, which names the boot, is lost; if its changes are of this boot, undo them by hand; remove the file then",
        root.path(FILE).display()
    ))
}

fn boot_id_of(root: &Root) -> String {
    root.read("proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

fn lock(root: &Root, tries: u32) -> Result<Lock> {
    let path = root.path(LOCK);
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
    let fd = OwnedFd::from(file.map_err(|e| Error::io("open", &path, e))?);
    for attempt in 1..=tries {
        if flock(&fd, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return Ok(Lock(fd));
        }
        if attempt < tries {
            root.sleep(LOCK_PAUSE);
        }
    }
    Err(Error::Locked(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_with_its_owner_although_a_child_has_a_copy() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let journal = Journal::try_open(&root).unwrap();
        let copy = journal._lock.0.try_clone().unwrap();
        assert!(Journal::try_open(&root).is_err());
        drop(journal);
        assert!(Journal::try_open(&root).is_ok());
        drop(copy);
    }
}
