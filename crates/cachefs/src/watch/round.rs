//! The changes of one round of reading, each once.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use super::Change;
use super::events::{Event, EventError, EventName, events};
use super::group::{ATTRIBUTES, CONTENT, Group, NAMES, adopt, identity};

/// The changes since the last round. Files are identified by `struct file_handle` until the end of the round.
#[derive(Debug, Default)]
pub struct Round {
    /// True if the content changed, false if only attributes did.
    handles: HashMap<Box<[u8]>, bool>,
    /// Names in a directory.
    names: HashMap<Box<[u8]>, HashSet<OsString>>,
    /// Device and inode number of files whose content changed.
    files: HashSet<(u64, u64)>,
    /// An event was lost: anything may have changed.
    lost: bool,
}

impl Round {
    /// Adds the events of one read(2), except those of the process `own`.
    ///
    /// # Errors
    /// A malformed event. The events before it are added.
    pub fn add_all(&mut self, buffer: &[u8], own: u32) -> Result<(), EventError> {
        events(buffer).try_for_each(|event| {
            self.add(&event?, own);
            Ok(())
        })
    }

    fn add(&mut self, event: &Event<'_>, own: u32) {
        // First of all, even for the own process: an open descriptor must be closed.
        let file = (event.fd >= 0).then(|| adopt(event.fd));
        if event.mask & libc::FAN_Q_OVERFLOW != 0 {
            self.lost = true;
        } else if u32::try_from(event.pid) != Ok(own) {
            match file {
                Some(file) => self.add_file(identity(file.as_fd()).map(Some)),
                None => self.add_identified(event),
            }
        }
    }

    fn add_identified(&mut self, event: &Event<'_>) {
        let named = event.mask & NAMES != 0;
        match event.name {
            Some(EventName { dir, name }) if named => {
                self.names.entry(dir.into()).or_default().insert(OsStr::from_bytes(name).to_owned());
            }
            None if named => self.lost = true,
            _ => {}
        }
        if event.mask & (CONTENT | ATTRIBUTES) == 0 {
            return;
        }
        // Of a directory itself only the directory is reported.
        match event.handle.or(event.name.map(|name| name.dir)) {
            Some(handle) => {
                *self.handles.entry(handle.into()).or_default() |= event.mask & CONTENT != 0;
            }
            None => self.lost = true,
        }
    }

    /// Records that an event was lost.
    pub fn note_loss(&mut self) {
        self.lost = true;
    }

    fn add_file(&mut self, file: io::Result<Option<(u64, u64)>>) {
        match file {
            Ok(Some(file)) => drop(self.files.insert(file)),
            Ok(None) => {}
            Err(_) => self.lost = true,
        }
    }

    /// The changes. [`Change::Everything`] alone if anything may have changed.
    pub fn changes(self, group: &Group) -> Vec<Change> {
        if self.lost {
            return vec![Change::Everything];
        }
        self.resolved(group).unwrap_or_else(|_| vec![Change::Everything])
    }

    fn resolved(self, group: &Group) -> io::Result<Vec<Change>> {
        let mut changes: Vec<Change> =
            self.files.into_iter().map(|(dev, ino)| Change::File { dev, ino }).collect();
        for (handle, content) in self.handles {
            let file = group.resolve(&handle)?;
            let change = |(dev, ino)| {
                if content { Change::File { dev, ino } } else { Change::Attributes { dev, ino } }
            };
            changes.extend(file.map(change));
        }
        for (dir, names) in self.names {
            let Some((dev, ino)) = group.resolve(&dir)? else { continue };
            changes.extend(names.into_iter().map(|name| Change::Name { dev, ino, name }));
        }
        Ok(changes)
    }
}
