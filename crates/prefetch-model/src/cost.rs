//! What reads from a disk cost.

use serde::{Deserialize, Serialize};

/// The measured costs of a disk: `n` requests for `b` bytes, one at a time, take about `n·request_s + b·byte_s`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DiskCost {
    /// Seconds until the first byte of a request at a random offset: seek, rotation, round trip.
    pub request_s: f64,
    /// The same for a request near the previous one, as when skipping a hole within a file. At most `request_s`.
    pub near_request_s: f64,
    /// Seconds for each following byte.
    pub byte_s: f64,
}

impl DiskCost {
    /// Bytes that the disk reads in the time of another nearby request. Reading a shorter hole is faster than skipping it.
    pub fn hole_bytes(self) -> f64 {
        self.near_request_s.min(self.request_s) / self.byte_s.max(1e-12)
    }

    /// Seconds for this many requests and bytes.
    pub fn seconds(self, requests: u64, bytes: u64) -> f64 {
        requests as f64 * self.request_s + bytes as f64 * self.byte_s
    }
}
