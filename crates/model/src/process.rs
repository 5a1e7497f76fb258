//! The identity of a process, and whose it is.

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

/// Users of the system, and those that systemd makes for one service (systemd's UIDS-GIDS.md, "Special Distribution UID Ranges"
/// and "Special systemd UIDs"): nobody logs in as them.
pub const fn is_of_service(user: u32) -> bool {
    user < 1000 || (user >= 61_184 && user <= 65_519)
}
