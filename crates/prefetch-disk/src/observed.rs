//! Corrects a disk's measurement by the reads of real launches.
//!
//! A measurement takes a second. Disks with a burst (cloud volumes, a cache in front of a slow disk) are fast for that long and slow afterwards, so a
//! launch waits longer than the measurement predicts. Launches that eke does not read for are observed: the kernel's counters show how long their
//! reads took. Only slowness corrects. A launch that waits less than predicted has read in order, or from the disk's cache; several in a row that wait far
//! less are a reason to measure again.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::counters::Counters;
use crate::measure::Measured;

/// Fewer reads show chance.
const LEAST_READS: u64 = 16;
/// A shorter wait is not worth prefetching, whatever the disk.
const LEAST_WAIT_S: f64 = 0.1;
/// More writes than this share of the reads delay them: that is no property of the disk.
const MOST_WRITTEN_SHARE: f64 = 0.25;
/// Below this, the difference is chance or a queue.
const LEAST_SLOWDOWN: f64 = 2.0;
/// No burst is faster than this.
const MOST_SLOWDOWN: f64 = 1000.0;
/// The launches that count: a burst that returns is noticed within three.
const KEPT: usize = 5;
/// One launch may have met another program's reads.
const LEAST_LAUNCHES: usize = 2;

/// A launch with a shorter wait says nothing of a disk that has become faster ...
const LEAST_PREDICTED_S: f64 = 0.5;
/// ... and neither does one that waited for more than this share: reads in order, and from the disk's cache, are that fast.
const FAST_SHARE: f64 = 0.1;

/// How many times as long as measured the reads of a launch took; 1 if no longer. `did` counts what the disk did within `window` after an exec, without
/// reads of eke's own. `None` if that shows nothing.
pub fn slowdown(measured: &Measured, did: Counters, window: Duration) -> Option<f64> {
    // Requests that overlap wait at the same time, so their sum may exceed the window.
    let waited_s = (did.read_ms as f64 / 1e3).min(window.as_secs_f64());
    let is_delayed = did.written_bytes as f64 > MOST_WRITTEN_SHARE * did.read_bytes as f64;
    if did.reads < LEAST_READS || waited_s < LEAST_WAIT_S || is_delayed {
        return None;
    }
    let slowdown = waited_s / measured.cost().seconds(did.reads, did.read_bytes);
    Some(if slowdown >= LEAST_SLOWDOWN { slowdown.min(MOST_SLOWDOWN) } else { 1.0 })
}

/// Whether a launch waited far less than a measurement predicts; `None` if it did not read enough to show that.
pub fn is_far_faster(measured: &Measured, did: Counters) -> Option<bool> {
    let predicted_s = measured.cost().seconds(did.reads, did.read_bytes);
    let is_shown = did.reads >= LEAST_READS && predicted_s >= LEAST_PREDICTED_S;
    is_shown.then(|| (did.read_ms as f64 / 1e3) < FAST_SHARE * predicted_s)
}

/// The slowdowns of the last launches, the oldest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Slowdowns(Vec<f64>);

impl Slowdowns {
    /// Adds that of a launch.
    pub fn push(&mut self, slowdown: f64) {
        let extra = (self.0.len() + 1).saturating_sub(KEPT);
        self.0.drain(..extra);
        self.0.push(slowdown);
    }

    /// How many times as slow as measured the disk is: the lower median, at least 1.
    pub fn factor(&self) -> f64 {
        let mut sorted: Vec<f64> = self.0.iter().copied().filter(|s| s.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let median = sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(1.0);
        if sorted.len() < LEAST_LAUNCHES { 1.0 } else { median.clamp(1.0, MOST_SLOWDOWN) }
    }
}

impl Measured {
    /// The same disk, `factor` times as slow.
    #[must_use]
    pub fn slower(self, factor: f64) -> Self {
        Self {
            request_s: self.request_s * factor,
            near_request_s: self.near_request_s * factor,
            byte_s: self.byte_s * factor,
            ..self
        }
    }
}

#[cfg(test)]
#[path = "observed_tests.rs"]
mod tests;
