//! The identity of a process.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A process. The start time distinguishes it from a later process with the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessId {
    /// Its pid.
    pub pid: u32,
    /// Field 22 of `/proc/PID/stat` (proc_pid_stat(5)): its start in clock ticks since boot.
    pub start_ticks: u64,
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.pid, self.start_ticks)
    }
}
