//! The limits of a fetch.

use std::time::Duration;

/// The limits of a scheduler's fetches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Reading ahead pauses while less memory than this is available.
    pub reserve_bytes: u64,
    /// Reading ahead resumes after the disk was quiet for this long.
    pub quiet: Duration,
    /// A worker without progress for this long is abandoned, on network file systems; on disks after three times as long, because the idle class may
    /// wait for others.
    pub patience: Duration,
    /// Reading ahead ends after waiting this long in total.
    pub longest_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            reserve_bytes: 256 << 20,
            quiet: Duration::from_secs(1),
            patience: Duration::from_secs(10),
            longest_wait: Duration::from_secs(600),
        }
    }
}
