//! What reads from a disk cost, and what they cost the CPU.

use std::time::Duration;

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

/// Fetches that count, and the least that do: a single one may have met a busy CPU.
const KEPT_FETCHES: usize = 7;
const LEAST_FETCHES: usize = 3;
/// A fetch that read fewer pages (4 MiB) from the disk shows the cost of its threads, of opening files and of waiting rather than that of its pages.
const LEAST_PAGES: u64 = 1024;

/// The CPU time that eke takes for its reads: seconds a page in the last fetches, the oldest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CpuCost(Vec<f64>);

impl CpuCost {
    /// Adds a fetch that took `cpu` for all requested pages of 4 KiB: `fetched` from the disk, and `resident` ones, which it looked up. `false` if it was too
    /// small to count.
    pub fn push(&mut self, cpu: Duration, fetched: u64, resident: u64) -> bool {
        if fetched < LEAST_PAGES {
            return false;
        }
        let pages = fetched.saturating_add(resident);
        let extra = (self.0.len() + 1).saturating_sub(KEPT_FETCHES);
        self.0.drain(..extra);
        self.0.push(cpu.as_secs_f64() / pages as f64);
        true
    }

    /// Seconds of CPU time a page: the median; 0 before the third fetch.
    pub fn page_s(&self) -> f64 {
        let mut sorted: Vec<f64> = self.0.iter().copied().filter(|s| s.is_finite() && *s >= 0.0).collect();
        sorted.sort_by(f64::total_cmp);
        if sorted.len() < LEAST_FETCHES {
            return 0.0;
        }
        sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
    }
}

/// Of the starts whose reads would cost too much CPU time, one in this many is read all the same.
const MEASURED_OF: u32 = 16;

/// Starts that were not read for the CPU's sake. A cost that nothing measures again would count for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuRefusals(u32);

impl CpuRefusals {
    /// A start's reads would cost too much; returns whether they are done, to measure that again.
    pub fn is_read(&mut self) -> bool {
        self.0 = self.0.saturating_add(1);
        self.0 >= MEASURED_OF
    }

    /// A start is read, and measures the cost.
    pub fn measured(&mut self) {
        self.0 = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_cost_is_the_median_of_the_last_fetches() {
        let mut cost = CpuCost::default();
        assert_eq!(cost.page_s(), 0.0);
        assert!(!cost.push(Duration::from_secs(9), LEAST_PAGES - 1, 9000));
        for ms in [900, 900] {
            assert!(cost.push(Duration::from_millis(ms), 2000, 8000));
            assert_eq!(cost.page_s(), 0.0, "too few");
        }
        for ms in [1, 2, 3, 4, 5, 6, 7] {
            assert!(cost.push(Duration::from_millis(ms), 2000, 8000));
        }
        assert_eq!(cost.page_s(), 4e-7, "resident pages are looked up, too");
        let broken: CpuCost = serde_json::from_str("[-1.0, 2.0, 2.0, 3.0]").unwrap();
        assert_eq!(broken.page_s(), 2.0);
    }

    #[test]
    fn one_refused_start_in_sixteen_is_read() {
        let mut refusals = CpuRefusals::default();
        for _ in 0..3 {
            assert!((1..MEASURED_OF).all(|_| !refusals.is_read()));
            assert!(refusals.is_read() && refusals.is_read(), "until one has measured it: some are warm");
            refusals.measured();
        }
    }
}
