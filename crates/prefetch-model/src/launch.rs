//! One start of one program.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::file_set::FileSet;
use crate::program::Program;

/// Why a launch was held to be over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// It touched nothing new for a while.
    Quiet,
    /// All its processes ended.
    Exited,
    /// It was still busy when the time for it was over.
    Limit,
    /// What it did was not seen whole: events were lost, there was no room for more, or the kernel tells only what came into memory.
    Lost,
}

/// What was seen of a launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// What was started.
    pub program: Program,
    /// Who started it.
    pub uid: u32,
    /// When, in nanoseconds since 1970.
    pub began_ns: i64,
    /// Until it was over; without the quiet time that showed it.
    pub took: Duration,
    /// Why it was held to be over.
    pub ended: Ended,
    /// What it touched.
    pub set: FileSet,
    /// Bytes of it that were not in memory before: none in a warm launch.
    pub cold_bytes: u64,
}
