//! What one round of reading found: each changed file once.

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;

use super::events::{Event, Strange, events};
use super::group::{Group, adopt, identity};

/// What became known since the last round.
#[derive(Debug, Default)]
pub struct Round {
    /// `struct file_handle`s.
    handles: HashSet<Box<[u8]>>,
    /// Device and inode number.
    files: HashSet<(u64, u64)>,
    /// Something was lost: any file may have changed.
    lost: bool,
}

impl Round {
    /// Takes in what one read(2) returned; events of the process `own` are left out.
    ///
    /// # Errors
    /// What no event can be. What came before it is taken in.
    pub fn take(&mut self, buffer: &[u8], own: u32) -> Result<(), Strange> {
        events(buffer).try_for_each(|event| {
            self.one(&event?, own);
            Ok(())
        })
    }

    fn one(&mut self, event: &Event<'_>, own: u32) {
        // whoever did it: an open descriptor must be closed
        let file = (event.fd >= 0).then(|| adopt(event.fd));
        if event.mask & libc::FAN_Q_OVERFLOW != 0 {
            self.lost = true;
        } else if u32::try_from(event.pid) != Ok(own) {
            match (event.handle, file) {
                (Some(handle), _) => drop(self.handles.insert(handle.into())),
                (None, Some(file)) => self.known(identity(file.as_fd()).map(Some)),
                (None, None) => self.lost = true,
            }
        }
    }

    /// Something happened that is not known.
    pub fn lose(&mut self) {
        self.lost = true;
    }

    fn known(&mut self, file: io::Result<Option<(u64, u64)>>) {
        match file {
            Ok(Some(file)) => drop(self.files.insert(file)),
            Ok(None) => {}
            Err(_) => self.lost = true,
        }
    }

    /// The files that changed. `None`: any may have.
    pub fn files(mut self, group: &Group) -> Option<HashSet<(u64, u64)>> {
        for handle in std::mem::take(&mut self.handles) {
            if self.lost {
                return None;
            }
            self.known(group.resolve(&handle));
        }
        (!self.lost).then_some(self.files)
    }
}
