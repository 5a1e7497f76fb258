//! How much a measurement may take.

use std::time::Duration;

use eke_core::units::{Bytes, MIB};

/// Below this much available memory the sample and its compressed copies would be felt.
const TIGHT: Bytes = Bytes(512 * MIB);
/// What is sampled then: still 4,096 pages when some end in between.
const TIGHT_PAGES: usize = 4608;

/// How much a measurement may take. Each stage stops at its own limit with what it has by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Pages to sample, at most; on a machine with less than 512 MiB of available memory 4,608 at most.
    pub pages: usize,
    /// To find and copy them.
    pub sampling: Duration,
    /// For all algorithms on scratch devices together, without what it takes to make and remove the devices.
    pub zram: Duration,
    /// For all estimates in user space together.
    pub estimates: Duration,
    /// For each of the two disks.
    pub disk: Duration,
}

impl Limits {
    /// The pages to sample with so much memory available.
    pub(crate) fn pages_with(&self, available: Bytes) -> usize {
        if available < TIGHT { self.pages.min(TIGHT_PAGES) } else { self.pages }
    }
}

impl Default for Limits {
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self { pages: 8192, sampling: ms(500), zram: ms(1200), estimates: ms(250), disk: ms(500) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_machine_is_sampled_less() {
        assert_eq!(Limits::default().pages_with(Bytes::mib(90)), 4608);
        assert_eq!(Limits::default().pages_with(Bytes::mib(4000)), 8192);
    }
}
