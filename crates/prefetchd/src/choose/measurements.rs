//! The stored measurements of disks, and what launches showed since. Pure.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use eke_prefetch_disk::counters::Counters;
use eke_prefetch_disk::observed::{Slowdowns, is_far_faster, slowdown};
use eke_prefetch_disk::{DiskIdentity, Measured};

/// The most disks; the longest unmeasured go.
const MOST: usize = 32;
/// A smaller change of a disk's costs makes no new profile.
const LEAST_CHANGE: f64 = 1.25;
/// So many launches in a row that waited far less than predicted are a reason to measure again.
const DOUBTS: u32 = 5;

/// A measurement with an identity that survives a boot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredMeasurement {
    disk: DiskIdentity,
    /// The measurement.
    pub measured: Measured,
    /// What launches saw since then.
    #[serde(default)]
    pub slowdowns: Slowdowns,
    /// Launches in a row that waited far less than predicted.
    #[serde(skip)]
    doubts: u32,
    /// Whether such launches led to it: they do so once, because reads in order may be as fast.
    #[serde(default)]
    is_repeated: bool,
}

/// All of them, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Measurements(Vec<StoredMeasurement>);

impl Measurements {
    /// From [`Self::to_state`]; foreign bytes are none.
    pub fn from_state(bytes: &[u8]) -> Self {
        Self(serde_json::from_slice(bytes).unwrap_or_default())
    }

    /// For the next process.
    pub fn to_state(&self) -> Vec<u8> {
        serde_json::to_vec(&self.0).unwrap_or_default()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// That of a disk.
    pub fn of(&self, disk: &DiskIdentity) -> Option<&StoredMeasurement> {
        self.0.iter().find(|stored| stored.disk == *disk)
    }

    /// Whether launches show that a disk is to be measured again.
    pub fn is_doubtful(&self, disk: &DiskIdentity) -> bool {
        self.of(disk).is_some_and(|stored| stored.doubts >= DOUBTS && !stored.is_repeated)
    }

    /// A disk was measured.
    pub fn put(&mut self, disk: &DiskIdentity, measured: Measured) {
        let is_repeated = self.is_doubtful(disk);
        self.0.retain(|other| other.disk != *disk);
        let over = (self.0.len() + 1).saturating_sub(MOST);
        self.0.drain(..over);
        let (disk, slowdowns) = (disk.clone(), Slowdowns::default());
        self.0.push(StoredMeasurement { disk, measured, slowdowns, doubts: 0, is_repeated });
    }

    /// A launch has read from a disk, within `window`. Returns whether that changes what the disk costs.
    pub fn launched(&mut self, disk: &DiskIdentity, did: Counters, window: Duration) -> bool {
        let Some(stored) = self.0.iter_mut().find(|stored| stored.disk == *disk) else { return false };
        let before = stored.slowdowns.factor();
        let slowdown = slowdown(&stored.measured, did, window);
        slowdown.into_iter().for_each(|slowdown| stored.slowdowns.push(slowdown));
        match is_far_faster(&stored.measured, did) {
            Some(true) => stored.doubts = stored.doubts.saturating_add(1),
            Some(false) => stored.doubts = 0,
            None => {}
        }
        let ratio = stored.slowdowns.factor() / before;
        ratio.max(1.0 / ratio) >= LEAST_CHANGE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROTATING: Measured = Measured {
        request_s: 0.01,
        near_request_s: 0.01,
        depth_gain: 1.0,
        byte_s: 1e-8,
        reads: 60,
        bytes: 6 << 20,
        took_s: 1.0,
    };
    const WINDOW: Duration = Duration::from_secs(2);

    fn disk(name: u32) -> DiskIdentity {
        let text = format!(r#"{{"disks":["naa.{name}"],"rotational":true,"size_bytes":4096}}"#);
        serde_json::from_str(&text).unwrap()
    }

    fn launch(read_ms: u64) -> Counters {
        Counters { reads: 100, read_bytes: 100 << 14, read_ms, ..Counters::default() }
    }

    #[test]
    fn launches_in_a_row_that_hardly_wait_have_a_disk_measured_again_once() {
        let mut measurements = Measurements::default();
        measurements.put(&disk(1), ROTATING);
        let mut doubts_after = |waits_ms: &[u64]| {
            waits_ms.iter().for_each(|ms| _ = measurements.launched(&disk(1), launch(*ms), WINDOW));
            let is_doubtful = measurements.is_doubtful(&disk(1));
            if is_doubtful {
                measurements.put(&disk(1), ROTATING);
                measurements = Measurements::from_state(&measurements.to_state());
            }
            is_doubtful
        };
        assert!(!doubts_after(&[10, 10, 10, 10, 900]), "not in a row");
        assert!(!doubts_after(&[10, 10, 10, 10]));
        assert!(doubts_after(&[10]));
        assert!(!doubts_after(&[10; 50]), "it was measured again");
    }

    #[test]
    fn the_longest_unmeasured_disks_go() {
        let mut measurements = Measurements::default();
        (0..100).for_each(|name| measurements.put(&disk(name), ROTATING));
        assert_eq!(measurements.0.len(), MOST);
        assert!(measurements.of(&disk(99)).is_some() && measurements.of(&disk(67)).is_none());
    }
}
