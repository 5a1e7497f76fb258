//! Limits of a measurement.

use std::path::PathBuf;
use std::time::Duration;

use eke_model::units::Bytes;

/// The sample takes at most one part in so many of the available memory. Its compressed copies on scratch devices come on top: on a machine of 124 MB,
/// a quarter evicted the text of every program, and measuring took 40 s.
const PART_OF_AVAILABLE: u64 = 12;
/// The fewest pages to sample, with any available memory.
pub(super) const LEAST_PAGES: usize = 512;

/// Limits of a measurement. Each stage stops at its own limit and keeps its results so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most to sample; less if it would take more than a twelfth of the available memory.
    pub sample: Bytes,
    /// The time to find and copy them.
    pub sampling: Duration,
    /// The same on a slow CPU, which found hardly a page in [`Limits::sampling`].
    pub sampling_if_slow: Duration,
    /// The time for all algorithms on scratch devices together, without making and removing the devices.
    pub zram: Duration,
    /// The same while the order of the algorithms is not clear. Almost equal algorithms never get clear, and somebody waits for `eke up`.
    pub zram_if_unclear: Duration,
    /// The same on a slow CPU, for which [`Limits::zram`] is too short for trusted results.
    pub zram_if_slow: Duration,
    /// The time for all estimates in user space together.
    pub estimates: Duration,
    /// The same while the order is not clear.
    pub estimates_if_unclear: Duration,
    /// The same on a slow CPU.
    pub estimates_if_slow: Duration,
    /// The time for each of the two disks.
    pub disk: Duration,
}

impl Limits {
    /// The pages to sample with so much memory available.
    pub(crate) fn pages_with(&self, available: Bytes) -> usize {
        self.pages_of(rustix::param::page_size(), available)
    }

    /// The same with pages of this size.
    fn pages_of(&self, page_bytes: usize, available: Bytes) -> usize {
        let fit = self.sample.0.min(available.0 / PART_OF_AVAILABLE) / page_bytes as u64;
        usize::try_from(fit).unwrap_or(usize::MAX).max(LEAST_PAGES)
    }

    /// While a desktop waits for the plan, and all services of the boot share the CPU with the measurement.
    pub(crate) fn at_boot() -> Self {
        let ms = Duration::from_millis;
        Self {
            sample: Bytes::mib(8),
            sampling: ms(300),
            sampling_if_slow: ms(5000),
            zram: ms(600),
            zram_if_unclear: ms(600),
            zram_if_slow: ms(3000),
            estimates: ms(250),
            estimates_if_unclear: ms(250),
            estimates_if_slow: ms(1000),
            disk: ms(200),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self {
            sample: Bytes::mib(32),
            sampling: ms(500),
            sampling_if_slow: ms(5000),
            zram: ms(1200),
            zram_if_unclear: ms(5000),
            zram_if_slow: ms(15_000),
            estimates: ms(250),
            estimates_if_unclear: ms(1500),
            estimates_if_slow: ms(5000),
            disk: ms(500),
        }
    }
}

/// The scope of a measurement; by default the whole machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// Sample these processes alone: those of a box stand for a machine of their own.
    pub processes: Option<Vec<u32>>,
    /// Read files in this directory alone, by its path on the machine: the programs of a box.
    pub files: Option<PathBuf>,
    /// Measure these algorithms alone, with the kernel's defaults; all algorithms with the kernel's defaults if it offers none of them.
    pub algorithms: Option<Vec<String>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_machine_is_sampled_less() {
        let pages = |mib| Limits::default().pages_of(4096, Bytes::mib(mib));
        assert_eq!([pages(3), pages(48), pages(200), pages(4000)], [512, 1024, 4266, 8192]);
    }

    #[test]
    fn fewer_large_pages_are_sampled() {
        let pages = |page_bytes| Limits::default().pages_of(page_bytes, Bytes::mib(4000));
        assert_eq!([4 << 10, 16 << 10, 64 << 10].map(pages), [8192, 2048, 512]);
    }
}
