//! The *slow disk*: a block device with the timing of an older disk. It is a loop device over one file of a small FUSE
//! file server in this process, which answers each request when the modelled disk would.
//!
//! ```text
//! program -> /dev/loopN -> (direct I/O) -> FUSE -> server: image at once, answer when it is due in the model
//! ```
//!
//! - [`profile`]: the timing of a disk; the four disks of the experiments
//! - [`model`]: when a request is done, in order of arrival; `drive`: in the order that a drive chooses (both pure)
//! - [`stats`]: the disk's counters
//! - [`accuracy`]: nominal values beside [`fio`]'s measurements
//!
//! A limit of the block layer (`blkio`, `io.max`) does not make a slow disk: it is above the scheduler, buffered writes
//! escape it on cgroup v1, and it does not limit a helper outside the group.
//!
//! # Rules
//! - The server is this process, so this process must not be in the cgroup box that uses the disk: a box short of
//!   memory would wait for a server that waits for memory. [`eke_sandbox::cgroup_box`] runs only its command in the
//!   group, so its supervisor may own a disk.
//! - Before swapping on it, check [`SlowDisk::may_hold_swap`]. Swap a box, not a whole machine that is short of memory:
//!   the server's own allocations would wait for it (PR_SET_IO_FLUSHER would help, but needs CAP_SYS_RESOURCE).
//! - The image must be fast: a file in the page cache, or [`Image::Memory`], which is this machine's memory.
//! - Distance is a share of the device: a small image behaves like a whole disk.
//! - A disk serves in order of arrival, and takes 128 requests, so more requests in flight do not make a rotating one faster, and the kernel's
//!   scheduler has only what is beyond them. `NAME+ncq` takes 32 and orders them itself, as drives do; `+queue=4` leaves the order to the
//!   scheduler: the block layer is the kernel's own.
//! - The machine's own overhead of a request is measured at attach and subtracted from each request. On a busy machine
//!   answers are still late; [`Stats::late`] has the total.
//!
//! Nothing is left: [`SlowDisk::detach`] and `Drop` unmount, detach and end the server. After `kill -9` of the owner,
//! every request to the device fails with EIO, and the next [`SlowDisk::attach`] or [`sweep`] removes the leftovers.

pub mod accuracy;
mod calibrate;
mod connection;
mod device;
mod disk;
mod drive;
mod due;
mod engine;
mod error;
mod faults;
pub mod fio;
mod host;
mod image;
mod mechanics;
pub mod model;
mod mount_dir;
mod mounts;
mod pace;
pub mod profile;
mod server;
mod state;
pub mod stats;
mod store;
mod users;

use std::path::PathBuf;

use eke_model::units::Bytes;

pub use disk::SlowDisk;
pub use error::{Error, Result};
pub use host::Host;
pub use mount_dir::sweep;
pub use profile::Profile;
pub use stats::Stats;

/// The storage behind a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Image {
    /// This file. A missing file is created, sparse; an existing one must have the disk's size.
    File(PathBuf),
    /// This machine's memory: empty, never swapped out, freed with the disk.
    Memory,
}

/// The specification of a disk.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowDiskSpec {
    /// The storage behind it.
    pub image: Image,
    /// Its size, a multiple of 4 KiB.
    pub size: Bytes,
    /// Its timing.
    pub profile: Profile,
    /// Its volatile write cache: a power cut loses at most this much unflushed data. It costs this process as much
    /// memory.
    pub cache: Bytes,
}

impl SlowDiskSpec {
    /// A disk with a write cache of 32 MiB.
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
    fn impossible_disks_are_refused_before_anything_is_created() {
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
