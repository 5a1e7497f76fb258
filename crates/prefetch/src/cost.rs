//! What reads cost where a file lies.

use serde::{Deserialize, Serialize};

/// A disk's costs, as measured: a read of `n` requests and `b` bytes takes about `n·request_s + b·byte_s`, one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DiskCost {
    /// Seconds until a request anywhere begins to be answered: seek, rotation, round trip.
    pub request_s: f64,
    /// Seconds for a byte of what follows.
    pub byte_s: f64,
}

impl DiskCost {
    /// Seconds for so many requests and bytes.
    pub fn seconds(self, requests: u64, bytes: u64) -> f64 {
        requests as f64 * self.request_s + bytes as f64 * self.byte_s
    }
}
