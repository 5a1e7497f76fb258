//! Disks: which block device is below a file system, and what it is like, as measured and not as it says.
//!
//! # Layout
//! - [`number`]: `MAJOR:MINOR` as a number and back (pure)
//! - [`counters`]: `/proc/diskstats` as data (pure)
//! - [`below`](mod@below): through partitions, dm, md, loop, btrfs and overlay down to the disks, by mountinfo and sysfs
//! - [`plan`]: where a measurement reads (pure)
//! - [`measure`](mod@measure): a measurement, at most a second and 8 MiB
//! - [`decide`](mod@decide): the disk profile, of the measurements: what kind of disk it is and how it is best read (pure)

pub mod below;
pub mod counters;
pub mod decide;
mod direct;
pub mod measure;
pub mod number;
pub mod plan;

use serde::{Deserialize, Serialize};

pub use below::{Below, Block, Bottom, below};
pub use decide::{DiskProfile, Way, decide};
pub use measure::{Measured, Target, measure};

/// What kind of disk it is, for the order of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskKind {
    /// Requests wait for an arm and a platter: the order of reading is what counts.
    Rotating,
    /// Requests are quick, and several at once are quicker.
    Flash,
    /// Requests are slow, but no slower for being far apart: an SD card, a network's block device.
    Card,
    /// A server answers, over a network or on this machine (FUSE), and may never.
    Network,
}
