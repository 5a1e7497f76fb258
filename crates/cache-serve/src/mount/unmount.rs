//! Unmounting. Blocks, perhaps until a worker answers: the supervisor does it in a process of its own.

use std::io;

use eke_cache_mounts::Mount;
use eke_cache_mounts::status::{Kind, Refusal};
use eke_cache_mounts::unmount::{detach, now, patiently};
use rustix::mount::UnmountFlags;

use super::{By, by_fusermount};

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

/// Takes the mount away.
///
/// # Errors
/// `Busy` if files are open there; else what the kernel or fusermount3 said.
pub fn unmount(shown: &Mount, by: By, how: How) -> Result<(), Refusal> {
    let done = match (by, how) {
        (By::Root, How::Force) => {
            // Together the kernel refuses them where files are open; the first one has ended the connection then.
            let _ = detach(shown, UnmountFlags::FORCE);
            detach(shown, UnmountFlags::DETACH)
        }
        (By::Root, how) => eke_cache_mounts::unmount(shown, how == How::Lazily),
        (By::Fusermount, how) => patiently(|| by_now(shown, how != How::IfUnused)),
    };
    done.map_err(|e| {
        let kind = if e.kind() == io::ErrorKind::ResourceBusy { Kind::Busy } else { Kind::Failed };
        Refusal { what: format!("cannot unmount {:?}: {e}", shown.place), kind }
    })
}

fn by_now(shown: &Mount, lazy: bool) -> io::Result<()> {
    now(shown)?.map_or(Ok(()), |mount| by_fusermount::unmount(&mount.place, lazy))
}
