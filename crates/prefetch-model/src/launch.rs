//! One launch of one program.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::file_set::FileSet;
use crate::program::Program;

/// Why recording of a launch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LaunchEnd {
    /// It touched nothing new for a while.
    Quiet,
    /// All its processes ended.
    Exited,
    /// It was still busy at the time limit.
    Limit,
    /// The record is incomplete: events were lost, a bound was reached, or the kernel reports only pages that entered memory.
    Lost,
}

/// The record of a launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// The program that started.
    pub program: Program,
    /// The user id of its starter; of a container's user, its owner's ([`crate::learn::Owners`]).
    pub uid: u32,
    /// Start time in nanoseconds since 1970.
    pub began_ns: i64,
    /// Duration up to the last new page, without the quiet time that ended it.
    pub took: Duration,
    /// Why recording ended.
    pub ended: LaunchEnd,
    /// What it touched.
    pub set: FileSet,
    /// Bytes that were not in memory before: 0 for a warm launch.
    pub cold_bytes: u64,
}
