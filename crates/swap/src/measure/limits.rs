//! How much a measurement may take.

use std::path::PathBuf;
use std::time::Duration;

use eke_model::units::Bytes;

/// The sample takes at most this part of the available memory. Its compressed copies on the scratch devices come on
/// top: on a machine of 124 MB a quarter made every program's text come back from the disk, and measuring took 40 s.
const PART_OF_AVAILABLE: u64 = 12;
/// So few pages are sampled however little is available.
pub(super) const LEAST_PAGES: usize = 512;

/// How much a measurement may take. Each stage stops at its own limit with what it has by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Pages to sample, at most; fewer where they would take more than a twelfth of the available memory.
    pub pages: usize,
    /// To find and copy them.
    pub sampling: Duration,
    /// The same on a CPU so slow that hardly a page was found in [`Limits::sampling`].
    pub sampling_if_slow: Duration,
    /// For all algorithms on scratch devices together, without what it takes to make and remove the devices.
    pub zram: Duration,
    /// The same on a CPU so slow that [`Limits::zram`] is too short for figures that can be believed.
    pub zram_if_slow: Duration,
    /// For all estimates in user space together.
    pub estimates: Duration,
    /// For each of the two disks.
    pub disk: Duration,
}

impl Limits {
    /// The pages to sample with so much memory available.
    pub(crate) fn pages_with(&self, available: Bytes) -> usize {
        let fit = available.0 / PART_OF_AVAILABLE / rustix::param::page_size() as u64;
        self.pages.min(usize::try_from(fit).unwrap_or(usize::MAX).max(LEAST_PAGES))
    }
}

impl Default for Limits {
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self {
            pages: 8192,
            sampling: ms(500),
            sampling_if_slow: ms(5000),
            zram: ms(1200),
            zram_if_slow: ms(15_000),
            estimates: ms(250),
            disk: ms(500),
        }
    }
}

/// What a measurement is about; by default the whole machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    /// Sample these processes alone: those of a box stand for a machine of their own.
    pub processes: Option<Vec<u32>>,
    /// Read files below this directory alone, as the machine sees it: where the programs of a box are.
    pub files: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_machine_is_sampled_less() {
        assert_eq!(Limits::default().pages_with(Bytes::mib(3)), 512);
        assert_eq!(Limits::default().pages_with(Bytes::mib(48)), 1024);
        assert_eq!(Limits::default().pages_with(Bytes::mib(200)), 4266);
        assert_eq!(Limits::default().pages_with(Bytes::mib(4000)), 8192);
    }
}
