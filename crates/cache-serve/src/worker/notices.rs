//! Tells the kernel of changes: through the guard, since such a call may wait for an answer that only this worker can give.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use eke_cachefs::fs::Fs;
use eke_cachefs::node::{DirEntry, ROOT};

use crate::supervisor::notice::{Notice, send_to, write_to};

/// Longer than an open, its request for attributes and a first read take together.
pub(super) const ANSWERED_WITHIN: Duration = Duration::from_millis(10);

/// Sends notices.
pub(super) struct Notices {
    fs: Arc<Fs>,
    guard: Option<OwnedFd>,
    /// Of the connection, if there is no guard.
    device: OwnedFd,
    /// The mount points that were told of at the last check. They are told of again: an answer may have been on its way.
    told: Mutex<Vec<DirEntry>>,
}

impl Notices {
    pub(super) fn new(fs: Arc<Fs>, guard: Option<OwnedFd>, device: OwnedFd) -> Self {
        // From now on, changes count.
        fs.nodes().changed_points();
        Self { fs, guard, device, told: Mutex::default() }
    }

    fn send(&self, notice: Notice<'_>) {
        if matches!(notice, Notice::Content(ROOT) | Notice::Attributes(ROOT)) && !self.is_root_answered() {
            return;
        }
        let sent = self.guard.as_ref().map(|guard| send_to(guard.as_fd(), notice));
        if matches!(sent, Some(Ok(()))) {
            return;
        }
        // Without a guard this thread waits for the kernel.
        write_to(self.device.as_fd(), notice);
    }

    /// False if the kernel has no attributes of the root yet. Waits for the first ones: a notice before they arrive makes the kernel
    /// ignore them, and the root has no permissions for who asked (`fuse_change_attributes_i` in fs/fuse/inode.c).
    fn is_root_answered(&self) -> bool {
        let asked = self.fs.root_asked();
        let left = asked.and_then(|asked| ANSWERED_WITHIN.checked_sub(asked.elapsed()));
        left.into_iter().for_each(std::thread::sleep);
        asked.is_some()
    }

    /// A file's content, and its attributes.
    pub(super) fn content(&self, node: u64) {
        self.send(Notice::Content(node));
    }

    /// A node's attributes.
    pub(super) fn attributes(&self, node: u64) {
        self.send(Notice::Attributes(node));
    }

    /// A name in a directory, and the directory's list and attributes.
    pub(super) fn name(&self, parent: u64, name: &OsStr) {
        self.send(Notice::Name(parent, name));
        self.send(Notice::Content(parent));
    }

    /// Anything may have changed. Lists end at the next opening of their directory. True if the kernel holds names and attributes, so
    /// that all must be sent.
    pub(super) fn note_everything(&self) -> bool {
        self.fs.lifetimes().note_everything(Instant::now())
    }

    /// All that the kernel holds, but for files that are open. Nothing may be mounted inside.
    pub(super) fn forget_all(&self) {
        for entry in self.fs.nodes().all().1.iter().filter(|entry| entry.parent == ROOT) {
            self.send(Notice::Tree(entry.parent, &entry.name));
        }
    }

    /// All names and attributes, but for those on other mounts inside: they are never held, and a notice in a directory there waits for
    /// what a server does not answer.
    pub(super) fn all_names(&self) {
        let (nodes, entries) = self.fs.nodes().all();
        for entry in entries {
            self.send(Notice::Name(entry.parent, &entry.name));
        }
        for node in nodes {
            self.send(Notice::Attributes(node));
        }
    }

    /// Tells of the mount points inside whose mount came or went since the last call, since the kernel reports that to no watch. And names
    /// are held again when no event was lost for a while. Call it every second.
    pub(super) fn check(&self) {
        self.fs.lifetimes().resume(Instant::now());
        // Also without a watch: it notes the mount points.
        let changed = self.fs.nodes().changed_points();
        // What the kernel keeps of a directory at its old place could not be served at another one. A lookup there would drop it, too.
        for (point, _) in changed.iter().filter(|(_, went)| *went) {
            self.send(Notice::Tree(point.parent, &point.name));
        }
        if !self.fs.lifetimes().are_reported() {
            return;
        }
        let changed: Vec<_> = changed.into_iter().map(|(point, _)| point).collect();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let again = std::mem::replace(&mut *told, changed.clone());
        drop(told);
        if !changed.is_empty() {
            self.fs.lifetimes().note_change();
        }
        for point in changed.iter().chain(&again) {
            self.send(Notice::Name(point.parent, &point.name));
        }
    }

    /// Has the kernel drop what it keeps of directories that were found at another place since, as far as nobody uses it. A directory in use
    /// may have lost its name, so those below are named, too. Call it every few seconds.
    pub(super) fn drop_left(&self) {
        for entry in self.fs.nodes().take_left() {
            self.send(Notice::Tree(entry.parent, &entry.name));
        }
    }
}
