//! The *slow disk*: a block device that is as slow as one says. A loop device over one file, served by a small FUSE file
//! server in this process, which answers each request when a modelled disk would.
//!
//! ```text
//! program -> /dev/loopN -> (direct I/O) -> FUSE -> server: image now, answer when the model says
//! ```
//!
//! - [`profile`]: what a disk is like; the four disks of the experiments
//! - [`model`]: when a request is done (pure)
//! - [`stats`]: what the disk was asked for
//! - [`accuracy`]: nominal figures beside what fio measures
//!
//! A limit of the block layer (`blkio`, `io.max`) is no slow disk: it sits above the scheduler, buffered writes escape it on
//! cgroup v1, and a helper outside the group is not limited.
//!
//! # What to know
//! - The server is this process, so this process must not be in the box that uses the disk: a box short of memory would
//!   wait for a server that waits for memory. [`eke_sandbox::cgroup_box`] runs only its command in the group, so its supervisor may own
//!   a disk.
//! - Swap on it: ask [`SlowDisk::may_hold_swap`], and swap a box, not a machine that is short of memory as a whole: the
//!   server's own allocations would wait for it (PR_SET_IO_FLUSHER would help, and needs CAP_SYS_RESOURCE).
//! - The image must be fast: a file in the page cache, or [`Image::Memory`], which is this machine's memory.
//! - Distance is a share of the device: a small image stands for a whole disk.
//! - The disk serves in the order of arrival, so more requests under way do not make a rotating disk faster; the kernel's
//!   scheduler above it still sorts what waits there.
//! - What the machine itself takes for the way there and back is measured when the disk is attached and taken off each
//!   request. On a busy machine answers still come late; [`Stats::late`] says by how much.
//!
//! Nothing stays behind: [`SlowDisk::detach`] and `Drop` unmount, detach and end the server. After `kill -9` of the owner
//! every request to the device fails with EIO, and the next [`SlowDisk::attach`] or [`sweep`] removes what is left.

pub mod accuracy;
mod calibrate;
mod connection;
mod desk;
mod device;
mod disk;
mod error;
mod faults;
mod fio;
mod image;
pub mod model;
mod mounts;
mod pace;
mod place;
pub mod profile;
mod server;
pub mod stats;
mod store;
mod users;

use std::path::PathBuf;

use eke_model::units::Bytes;

pub use disk::SlowDisk;
pub use error::{Error, Result};
pub use place::sweep;
pub use profile::Profile;
pub use stats::Stats;

/// What lies in the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Image {
    /// This file. It is made if it is not there, sparse; one that is there must have the disk's size.
    File(PathBuf),
    /// This machine's memory, empty, never swapped out, gone with the disk.
    Memory,
}

/// The disk that is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowDiskSpec {
    /// What lies in it.
    pub image: Image,
    /// Its size, a multiple of 4 KiB.
    pub size: Bytes,
    /// How slow it is.
    pub profile: Profile,
    /// Its write cache: at most this much of what was written and not flushed is lost in a power cut. It costs this
    /// process as much memory.
    pub cache: Bytes,
}

impl SlowDiskSpec {
    /// With a write cache of 32 MiB.
    pub fn new(image: Image, size: Bytes, profile: Profile) -> Self {
        Self { image, size, profile, cache: Bytes::mib(32) }
    }

    fn check(&self) -> Result<()> {
        if self.size.0 == 0 || self.size.0 % profile::PAGE != 0 {
            return Err(Error::Spec(format!("its size is {} bytes, not a multiple of 4096", self.size.0)));
        }
        self.profile.impossible().map_or(Ok(()), |why| Err(Error::Spec(why.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_disks_are_refused_before_anything_is_made() {
        let root = eke_linux::Root::at("/nonexistent");
        let image = Image::File("/nonexistent/image".into());
        let still = Profile { rate: 0, ..Profile::sd() };
        for (size, profile) in
            [(Bytes(0), Profile::sd()), (Bytes(1000), Profile::sd()), (Bytes::mib(1), still)]
        {
            let refused = SlowDisk::attach(&root, SlowDiskSpec::new(image.clone(), size, profile));
            assert!(matches!(refused, Err(Error::Spec(_))), "{refused:?}");
        }
    }
}
