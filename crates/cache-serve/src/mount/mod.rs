//! Mounting and unmounting: by mount(2) as root, else by fusermount3.

mod by_fusermount;
mod by_root;
pub mod check;
pub mod error;
mod unmount;
pub mod writers;

use std::io;
use std::os::fd::OwnedFd;

use eke_cache_mounts::settings::Settings;
use eke_cache_mounts::{Mount, mounts};

pub use check::{Checked, check};
pub use error::Error;
pub use unmount::{How, unmount};

/// The part of the mount's type after `fuse.`.
const SUBTYPE: &str = "eke-cache";
/// The largest read, in bytes, as in [`super::init::grant`].
const MAX_READ: u32 = 1 << 20;

/// Who mounted, and so who unmounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// mount(2) and umount2(2), as root.
    Root,
    /// The set-uid program of the package fuse3.
    Fusermount,
}

/// A mount that nobody serves yet.
#[derive(Debug)]
pub struct Mounted {
    /// How.
    pub by: By,
    /// The connection's device.
    pub device: OwnedFd,
    /// It, as the kernel shows it.
    pub shown: Mount,
}

/// Mounts. The kernel waits for an answer to `FUSE_INIT` then, so nothing below the place can be touched before that.
///
/// # Errors
/// In words for whoever asked; nothing is mounted then.
pub fn mount(settings: &Settings, checked: &Checked) -> Result<Mounted, Error> {
    let failed =
        |source| Error::Failed { place: checked.place.clone(), what: "it is not to be seen", source };
    let before = mounts::read().map_err(failed)?;
    let (by, device) = by_someone(settings, checked)?;
    match mounts::read().map(|after| new(&before, after, settings, checked)) {
        Ok(Some(shown)) => Ok(Mounted { by, device, shown }),
        other => Err(failed(other.err().unwrap_or_else(|| io::ErrorKind::NotFound.into()))),
    }
}

fn by_someone(settings: &Settings, checked: &Checked) -> Result<(By, OwnedFd), Error> {
    if rustix::process::geteuid().is_root() {
        match by_root::mount(settings, checked) {
            // A container's root may lack CAP_SYS_ADMIN and still have the set-uid program.
            Err(Error::NotPermitted { .. }) if by_fusermount::program().is_some() => {}
            done => return Ok((By::Root, done?)),
        }
    }
    Ok((By::Fusermount, by_fusermount::mount(settings, checked)?))
}

/// The one that was made. Its place may have another name by now; another process may mount the same directory elsewhere.
fn new(before: &[Mount], after: Vec<Mount>, settings: &Settings, checked: &Checked) -> Option<Mount> {
    let is_new = |m: &Mount| m.dir == settings.dir && !before.iter().any(|b| b.id == m.id);
    let mut all: Vec<_> = after.into_iter().filter(is_new).collect();
    let here = all.iter().rposition(|m| m.place == checked.place);
    here.map(|at| all.swap_remove(at)).or_else(|| all.pop())
}
