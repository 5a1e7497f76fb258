//! Mounting and unmounting: by mount(2) as root, else by fusermount3.

pub mod aside;
mod backing_dir;
mod by_fusermount;
mod by_root;
pub mod check;
pub mod error;
mod exports;
mod sandboxes;
mod sockets;
mod unmount;
pub(crate) mod users;
mod views;
pub mod writers;

use std::io;
use std::os::fd::OwnedFd;

use eke_cache_mounts::settings::Settings;
use eke_cache_mounts::unmount::fusermount;
use eke_cache_mounts::{Mount, mounts};

pub use check::{Checked, check};
pub use error::Error;
pub(crate) use exports::export_of;
pub use unmount::{UnmountMode, unmount};

/// The part of the mount's type after `fuse.`.
const SUBTYPE: &str = "eke-cache";
/// The largest read, in bytes, as in [`super::init::grant`].
const MAX_READ: u32 = 1 << 20;

/// How it was mounted, and so how it is unmounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountMethod {
    /// mount(2) and umount2(2), as root.
    Root,
    /// The set-user-ID program of the package fuse3.
    Fusermount,
}

/// A mount that nobody serves yet.
#[derive(Debug)]
pub struct Mounted {
    /// How it was mounted.
    pub by: MountMethod,
    /// The connection's device.
    pub device: OwnedFd,
    /// The mount in the kernel's list.
    pub shown: Mount,
}

/// Mounts. The kernel then waits for the reply to `FUSE_INIT`, so before that nothing may touch the mount.
///
/// # Errors
/// With a message for the user. Nothing is mounted then.
pub fn mount(settings: &Settings, checked: &Checked) -> Result<Mounted, Error> {
    let failed = |source| Error::Failed {
        place: checked.place.clone(),
        what: "the mount does not appear in /proc/self/mountinfo",
        source,
    };
    let before = mounts::read().map_err(failed)?;
    let (by, device) = by_root_or_fusermount(settings, checked)?;
    match mounts::read().map(|after| new(&before, after, settings, checked)) {
        Ok(Some(shown)) => Ok(Mounted { by, device, shown }),
        other => Err(failed(other.err().unwrap_or_else(|| io::ErrorKind::NotFound.into()))),
    }
}

fn by_root_or_fusermount(settings: &Settings, checked: &Checked) -> Result<(MountMethod, OwnedFd), Error> {
    if rustix::process::geteuid().is_root() {
        match by_root::mount(settings, checked) {
            // A container's root may lack CAP_SYS_ADMIN and still have the set-user-ID program.
            Err(Error::NotPermitted { .. }) if fusermount().is_some() => {}
            done => return Ok((MountMethod::Root, done?)),
        }
    }
    Ok((MountMethod::Fusermount, by_fusermount::mount(settings, checked)?))
}

/// The new mount. Its mount point may have been renamed by now, and another process may have mounted the same directory elsewhere.
fn new(before: &[Mount], after: Vec<Mount>, settings: &Settings, checked: &Checked) -> Option<Mount> {
    let is_new = |m: &Mount| m.dir == settings.dir && !before.iter().any(|b| b.id == m.id);
    let mut all: Vec<_> = after.into_iter().filter(is_new).collect();
    let here = all.iter().rposition(|m| m.place == checked.place);
    here.map(|at| all.swap_remove(at)).or_else(|| all.pop())
}
