//! Arm and platter: how long the head takes to an offset, and how long the transfer takes from there. Pure.

use eke_model::units::Bytes;

use super::profile::{Head, Profile};

/// The moving parts of a disk, in nanoseconds. Distance is a share of the device.
#[derive(Debug, Clone)]
pub(super) struct Mechanics {
    rate: u64,
    head: Option<Head>,
    size: u64,
    /// The end of the last request on the device.
    at: u64,
}

impl Mechanics {
    /// Those of a disk of `size`, with the head at its begin.
    pub(super) fn new(profile: &Profile, size: Bytes) -> Self {
        Self { rate: profile.rate, head: profile.head, size: size.0.max(1), at: 0 }
    }

    /// The head is now behind these bytes.
    pub(super) fn pass(&mut self, offset: u64, length: u64) {
        self.at = offset.saturating_add(length);
    }

    /// Rounded up, so that the rate is never exceeded.
    pub(super) fn nanos_for(&self, bytes: u64) -> u64 {
        let nanos = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(self.rate.max(1)));
        u64::try_from(nanos).unwrap_or(u64::MAX / 4)
    }

    /// Seek and rotation. Over a short forward distance, the head waits rather than seeks.
    pub(super) fn positioning(&self, begun: u64, offset: u64) -> u64 {
        let Some(head) = self.head else { return 0 };
        let seek = head.settle.0 + (head.stroke.0 as f64 * self.distance(offset).sqrt()) as u64;
        let sought = seek + self.rotation_to(&head, begun + seek, offset);
        match offset.checked_sub(self.at) {
            Some(ahead) => sought.min(self.nanos_for(ahead)),
            None => sought,
        }
    }

    /// Distance as a share of the device.
    fn distance(&self, offset: u64) -> f64 {
        (offset.abs_diff(self.at) as f64 / self.size as f64).min(1.0)
    }

    /// Time until `offset` is under the head. A track holds the bytes transferred in one rotation.
    fn rotation_to(&self, head: &Head, from: u64, offset: u64) -> u64 {
        let rotation = head.rotation.0.max(1);
        let angle = self.nanos_for(offset) % rotation;
        (angle + rotation - from % rotation) % rotation
    }
}
