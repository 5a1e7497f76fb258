//! Unmounting. It may block until a worker answers, so the supervisor does it in a separate process.

use std::io;

use eke_cache_mounts::Mount;
use eke_cache_mounts::status::{Refusal, RefusalKind};
use eke_cache_mounts::unmount::{detach, now, retry_busy};
use rustix::mount::UnmountFlags;

use super::{MountMethod, by_fusermount};

/// What happens to open files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnmountMode {
    /// Unmount only if no file is open.
    IfUnused,
    /// Remove the mount from the directory tree at once; open files go on until they are closed.
    Lazy,
    /// Remove it from the directory tree at once. As root also end the connection, so that no caller hangs (MNT_FORCE,
    /// `fuse_umount_begin()` in the kernel's `fs/fuse/inode.c`).
    Force,
}

/// Unmounts.
///
/// # Errors
/// `Busy` if files are open there; else the error of the kernel or of fusermount3.
pub fn unmount(shown: &Mount, by: MountMethod, mode: UnmountMode) -> Result<(), Refusal> {
    let done = match (by, mode) {
        (MountMethod::Root, UnmountMode::Force) => {
            // The kernel refuses both flags together while files are open. The first call ends the connection.
            let _ = detach(shown, UnmountFlags::FORCE);
            detach(shown, UnmountFlags::DETACH)
        }
        (MountMethod::Root, mode) => eke_cache_mounts::unmount(shown, mode == UnmountMode::Lazy),
        (MountMethod::Fusermount, mode) => {
            retry_busy(|| at_present_path(shown, mode != UnmountMode::IfUnused))
        }
    };
    done.map_err(|e| {
        let is_busy = e.kind() == io::ErrorKind::ResourceBusy;
        let kind = if is_busy { RefusalKind::Busy } else { RefusalKind::Failed };
        Refusal { what: format!("cannot unmount {:?}: {e}", shown.place), kind }
    })
}

fn at_present_path(shown: &Mount, lazy: bool) -> io::Result<()> {
    now(shown)?.map_or(Ok(()), |mount| by_fusermount::unmount(&mount.place, lazy))
}
