//! The CPU time of measuring, as `eke-io cost` prints it.

use serde::{Deserialize, Serialize};

/// The cost of measuring for a time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// The time, in seconds.
    pub seconds: f64,
    /// Requests that were counted, of all disks.
    pub requests: u64,
    /// Run time of the BPF programs in nanoseconds, as the kernel counts it.
    pub run_ns: u64,
    /// CPU time of the process that reads the maps every 5 s, in nanoseconds.
    pub reader_ns: u64,
}

impl Cost {
    /// The share of one CPU at `per_s` requests a second.
    pub fn share_at(&self, per_s: f64) -> f64 {
        let each = self.run_ns as f64 / self.requests.max(1) as f64;
        each * per_s / 1e9 + self.reader_ns as f64 / 1e9 / self.seconds.max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_grows_with_requests_and_reading_does_not() {
        let cost = Cost { seconds: 10.0, requests: 1_000, run_ns: 500_000, reader_ns: 10_000_000 };
        assert!((cost.share_at(10_000.0) - 0.006).abs() < 1e-12);
        assert!((Cost::default().share_at(10_000.0)).abs() < 1e-12);
    }
}
