//! The limits of a fetch.

use std::time::Duration;

/// What a scheduler is held to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Ahead is read only while this much memory is available besides.
    pub reserve_bytes: u64,
    /// Others' disk must have been quiet for this long before reading ahead goes on.
    pub quiet: Duration,
    /// A worker that brings nothing for this long is left behind, on network file systems; on disks after three times as long, since
    /// the idle class may wait for others.
    pub patience: Duration,
    /// Reading ahead that waits for others longer than this, all in all, ends.
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
