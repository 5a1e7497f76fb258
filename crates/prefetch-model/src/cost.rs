//! What reads cost where a file lies.

use serde::{Deserialize, Serialize};

/// A disk's costs, as measured: a read of `n` requests and `b` bytes takes about `n·request_s + b·byte_s`, one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DiskCost {
    /// Seconds until a request anywhere begins to be answered: seek, rotation, round trip.
    pub request_s: f64,
    /// The same near the end of the request before: what a hole within a file is skipped in. No more than `request_s`.
    pub near_request_s: f64,
    /// Seconds for a byte of what follows.
    pub byte_s: f64,
}

impl DiskCost {
    /// Bytes that are read in the time of another request near the one before: a shorter hole is read, not left out.
    pub fn hole_bytes(self) -> f64 {
        self.near_request_s.min(self.request_s) / self.byte_s.max(1e-12)
    }

    /// Seconds for so many requests and bytes.
    pub fn seconds(self, requests: u64, bytes: u64) -> f64 {
        requests as f64 * self.request_s + bytes as f64 * self.byte_s
    }
}
