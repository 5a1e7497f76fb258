//! Unmounting. Blocks, perhaps until a worker answers: the supervisor does it in a process of its own.

use std::path::Path;

use rustix::io::Errno;
use rustix::mount::UnmountFlags;

use super::{By, by_fusermount};
use crate::status::{Kind, Refusal};

/// Takes the mount at `place` away; `lazy`: from the names at once, and for good when the last file in it is closed.
///
/// # Errors
/// `Busy` if files are open there; else what the kernel or fusermount3 said.
pub fn unmount(place: &Path, by: By, lazy: bool) -> Result<(), Refusal> {
    let (said, busy) = match by {
        By::Root => match by_root(place, lazy) {
            Ok(()) => return Ok(()),
            Err(errno) => (format!("the kernel says: {}", std::io::Error::from(errno)), errno == Errno::BUSY),
        },
        By::Fusermount => match by_fusermount::unmount(place, lazy) {
            Ok(()) => return Ok(()),
            Err(said) => (said.clone(), said.contains("busy")),
        },
    };
    let kind = if busy { Kind::Busy } else { Kind::Failed };
    Err(Refusal { what: format!("cannot unmount {place:?}: {said}"), kind })
}

fn by_root(place: &Path, lazy: bool) -> rustix::io::Result<()> {
    let lazily = if lazy { UnmountFlags::DETACH } else { UnmountFlags::empty() };
    rustix::mount::unmount(place, UnmountFlags::NOFOLLOW | lazily)
}
