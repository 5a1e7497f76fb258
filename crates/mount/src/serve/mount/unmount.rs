//! Unmounting. Blocks, perhaps until a worker answers: the supervisor does it in a process of its own.

use std::io;
use std::path::Path;

use rustix::io::Errno;
use rustix::mount::UnmountFlags;

use super::{By, by_fusermount};
use crate::registry;
use crate::status::{Kind, Refusal};

/// How urgent it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Only if nothing is open there.
    IfUnused,
    /// From the names at once, and for good when the last file in it is closed.
    Lazily,
    /// From the names at once; as root the connection ends, too, whoever hangs on it (MNT_FORCE, `fuse_umount_begin()` in
    /// the kernel's `fs/fuse/inode.c`).
    Force,
}

/// Takes the mount at `place` away.
///
/// # Errors
/// `Busy` if files are open there; else what the kernel or fusermount3 said.
pub fn unmount(place: &Path, by: By, how: How) -> Result<(), Refusal> {
    let done = match (by, how) {
        (By::Root, How::Force) => {
            let flags = UnmountFlags::NOFOLLOW | UnmountFlags::DETACH;
            // Together the kernel refuses them where files are open; the first one has ended the connection then.
            let _ = rustix::mount::unmount(place, UnmountFlags::NOFOLLOW | UnmountFlags::FORCE);
            match rustix::mount::unmount(place, flags) {
                // The first one was enough.
                Err(Errno::INVAL) => Ok(()),
                other => other.map_err(io::Error::from),
            }
        }
        (By::Root, how) => registry::unmount(place, how == How::Lazily),
        (By::Fusermount, how) => by_fusermount::unmount(place, how != How::IfUnused),
    };
    done.map_err(|e| {
        let kind = if e.kind() == io::ErrorKind::ResourceBusy { Kind::Busy } else { Kind::Failed };
        Refusal { what: format!("cannot unmount {place:?}: {e}"), kind }
    })
}
