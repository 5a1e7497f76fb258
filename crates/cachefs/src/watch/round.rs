//! The changed files of one round of reading, each once.

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;

use super::events::{Event, EventError, events};
use super::group::{Group, adopt, identity};

/// The changes since the last round.
#[derive(Debug, Default)]
pub struct Round {
    /// `struct file_handle`s.
    handles: HashSet<Box<[u8]>>,
    /// Device and inode number.
    files: HashSet<(u64, u64)>,
    /// An event was lost: any file may have changed.
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
            match (event.handle, file) {
                (Some(handle), _) => drop(self.handles.insert(handle.into())),
                (None, Some(file)) => self.add_file(identity(file.as_fd()).map(Some)),
                (None, None) => self.lost = true,
            }
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

    /// The changed files. `None`: any file may have changed.
    pub fn files(mut self, group: &Group) -> Option<HashSet<(u64, u64)>> {
        for handle in std::mem::take(&mut self.handles) {
            if self.lost {
                return None;
            }
            self.add_file(group.resolve(&handle));
        }
        (!self.lost).then_some(self.files)
    }
}
