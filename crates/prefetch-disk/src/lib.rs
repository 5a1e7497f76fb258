//! Disks: the devices below a file system, and their profile as measured, not as reported.
//!
//! # Layout
//! - [`counters`]: `/proc/diskstats` as data (pure)
//! - [`backing`](mod@backing): the devices of a file system, through partitions, dm, md, loop, btrfs and overlay down to the disks, from mountinfo and
//!   sysfs
//! - [`plan`]: the offsets of a measurement (pure)
//! - [`measure`](mod@measure): measures a disk with at most 8 MiB, in about a second
//! - `direct`: reads that bypass the page cache
//! - [`identity`](mod@identity): which disks a measurement is of
//! - [`observed`]: corrects a measurement by the reads of real launches (pure)
//! - [`decide`](mod@decide): the disk profile: the kind of disk and how to read it, from the measurement (pure)

pub mod backing;
pub mod counters;
pub mod decide;
mod direct;
pub mod identity;
pub mod measure;
pub mod observed;
pub mod plan;

use serde::{Deserialize, Serialize};

pub use backing::{Backing, Block, Storage, backing};
pub use decide::{DiskProfile, ReadStrategy, decide};
pub use identity::{DiskIdentity, identity};
pub use measure::{Measured, Target, measure};

/// The kind of a disk, which decides the order of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskKind {
    /// Requests wait for an arm and a platter: the order of reading matters most.
    Rotating,
    /// Requests are fast, and several at once are faster.
    Flash,
    /// Requests are slow at any distance: an SD card, a network block device.
    Card,
    /// A server on the network or on this machine (FUSE), which may never answer.
    Network,
}
