//! A measurement: what requests cost on a disk.
//!
//! It reads around the page cache (O_DIRECT), in a thread of its own in the idle I/O class, and only while the disk is otherwise
//! quiet. A disk's own cache and that of a virtual machine's host are part of what is measured, as they are of what is read later.

use std::path::PathBuf;
use std::time::Duration;

use eke_kernel::Root;
use serde::{Deserialize, Serialize};

/// What is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The file system's block device, or, where that may not be read, a big file on it.
    pub path: PathBuf,
    /// The numbers of the disks below, whose counters show whether others use them; none where there are no counters.
    pub disks: Vec<u64>,
}

/// What was measured. Times are seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The median of random reads of 4 KiB, one at a time.
    pub request_s: f64,
    /// The same of reads in a thousandth of the disk.
    pub near_request_s: f64,
    /// Four at a time bring how many times as many requests as one.
    pub depth_gain: f64,
    /// A byte of what is read in a row.
    pub byte_s: f64,
    /// How many reads the figures are made of.
    pub reads: u32,
    /// How many bytes they were.
    pub bytes: u64,
    /// How long it took.
    pub took_s: f64,
}

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Others use the disk.
    #[error("{} was not measured: others use the disk ({reads} reads, {writes} writes, {in_flight} under way in {looked_ms} ms); it is tried again when it is quiet", path.display())]
    Busy {
        /// What was to be read.
        path: PathBuf,
        /// Reads of others.
        reads: u64,
        /// Writes of others.
        writes: u64,
        /// What was under way.
        in_flight: u64,
        /// For how long it was looked at.
        looked_ms: u128,
    },
    /// It is too small for a figure.
    #[error("{} was not measured: it has {bytes} bytes, and a figure needs 16 MiB", path.display())]
    Small {
        /// What was to be read.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// It did not answer.
    #[error("{} did not answer within {} s: it is not measured, and the thread that asked is left behind", path.display(), after.as_secs())]
    Silent {
        /// What was to be read.
        path: PathBuf,
        /// After what time it was given up.
        after: Duration,
    },
    /// The kernel refused.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// A verb.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
}

/// Measures, in about a second at most; blocks no longer than three. `seed` decides where is read.
///
/// # Errors
/// Others use the disk, the target is too small or cannot be read, or it does not answer.
pub fn measure(root: &Root, target: &Target, seed: u64) -> Result<Measured, Error> {
    let _ = (root, target, seed);
    todo!()
}
