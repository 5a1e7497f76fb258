//! Open directories: the descriptor of each, so that one pass sees one state where the backing file system keeps it with the
//! descriptor (overlayfs its merged list, btrfs the end of the list, FUSE the list of its server).
//!
//! A handle may have no descriptor: nothing was listed yet, another worker had it, or few are left. Then one is opened, and
//! `d_off` of getdents64(2), which stays valid when names come and go, finds the place.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};

use fuser::FileHandle;
use rustix::fs::{OFlags, SeekFrom, seek};

use super::handles::{Numbers, OF_NODE};
use crate::backing::{OF_READERS, at, is_within};
use crate::sync::lock;

/// A directory that is being listed.
#[derive(Debug)]
pub(super) struct Listing {
    /// Its descriptor.
    pub dir: OwnedFd,
    /// The descriptor's position, if it is known: that of the entry that getdents64(2) gives next.
    pub at: Option<u64>,
}

/// The open directories.
#[derive(Debug, Default)]
pub(super) struct Listings {
    numbers: Numbers,
    kept: Mutex<HashMap<u64, Arc<Mutex<Listing>>>>,
}

impl Listings {
    fn kept(&self) -> MutexGuard<'_, HashMap<u64, Arc<Mutex<Listing>>>> {
        lock(&self.kept)
    }

    /// A handle for one more open.
    pub fn another(&self) -> FileHandle {
        self.numbers.another()
    }

    /// The handle's descriptor, or a new one of this directory. It is a new one for the start of a list, since rewinddir(3) is to
    /// show the names of now.
    ///
    /// # Errors
    /// Those of openat(2).
    pub fn of(&self, handle: FileHandle, path: impl AsFd, offset: u64) -> io::Result<Arc<Mutex<Listing>>> {
        let kept = self.kept().get(&handle.0).map(Arc::clone);
        if let Some(kept) = kept.filter(|_| offset != 0) {
            return Ok(kept);
        }
        let dir = at::reopen(path.as_fd(), OFlags::RDONLY | OFlags::DIRECTORY)?;
        let keeps = handle != OF_NODE && is_within(&dir, OF_READERS);
        let listing = Arc::new(Mutex::new(Listing { dir, at: Some(0) }));
        if keeps {
            self.kept().insert(handle.0, Arc::clone(&listing));
        }
        Ok(listing)
    }

    /// Closes the handle.
    pub fn release(&self, handle: FileHandle) {
        let closed = self.kept().remove(&handle.0);
        drop(closed);
    }
}

impl Listing {
    /// Goes to an entry.
    ///
    /// # Errors
    /// Those of lseek(2).
    pub fn go_to(&mut self, offset: u64) -> io::Result<()> {
        if self.at.replace(offset) != Some(offset) {
            seek(&self.dir, SeekFrom::Start(offset))?;
        }
        Ok(())
    }
}
