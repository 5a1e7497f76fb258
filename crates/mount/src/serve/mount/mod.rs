//! Mounting and unmounting: by mount(2) as root, else by fusermount3.

mod by_fusermount;
mod by_root;
pub mod check;
pub mod error;
mod unmount;

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use crate::settings::Settings;

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
    /// Where, without symbolic links.
    pub place: PathBuf,
    /// How.
    pub by: By,
    /// The connection's device.
    pub device: OwnedFd,
}

/// Mounts. The kernel waits for an answer to `FUSE_INIT` then, so nothing below `place` can be touched before that.
///
/// # Errors
/// In words for whoever asked; nothing is mounted then.
pub fn mount(settings: &Settings, checked: &Checked) -> Result<Mounted, Error> {
    let place = checked.place.clone();
    if rustix::process::geteuid().is_root() {
        match by_root::mount(settings, checked) {
            // A container's root may lack CAP_SYS_ADMIN and still have the set-uid program.
            Err(Error::NotPermitted { .. }) if by_fusermount::program().is_some() => {}
            done => return Ok(Mounted { place, by: By::Root, device: done? }),
        }
    }
    let device = by_fusermount::mount(settings, checked)?;
    Ok(Mounted { place, by: By::Fusermount, device })
}
