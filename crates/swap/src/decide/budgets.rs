//! What an algorithm may cost: a page's way back, and the CPU.

use eke_model::units::{Bytes, Nanos};

use super::Given;
use crate::measure::measurements::AlgorithmMeasurement;

/// 99 of 100 reads of a good SSD take no longer, and half of them 100 µs.
const LEAST_LOAD: Nanos = Nanos::micros(250);

/// What memory does not hold comes from the disk. A load that takes a quarter of that is still a gain, and a stronger algorithm has fewer of the
/// others.
const LOADS_PER_READ: u64 = 4;

/// 5,000 pages of 4 KiB: 20 MB a second each way.
const MOST_PER_SECOND: u64 = 5000 * 4096;

/// 1 % of RAM goes each way in a second.
const RAM_PER_SECOND: u64 = 100;

/// The budgets of an algorithm on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Budgets {
    /// For the 99th percentile of loads.
    pub load_p99: Nanos,
    /// Traffic in, and as much out.
    pub pages_per_second: u32,
    /// The share of all CPUs at that traffic, in percent.
    pub cpu_percent: u32,
    cpus: usize,
}

impl Budgets {
    pub(super) fn of(given: Given<'_>) -> Self {
        let settings = &given.overrides.settings;
        let disk = given.measured.file_read.as_ref().map(|read| read.p50);
        Self {
            load_p99: settings.load_p99_us.map_or_else(|| load(disk), |us| Nanos::micros(us.into())),
            pages_per_second: settings
                .pages_per_second
                .unwrap_or_else(|| traffic(given.facts.ram, given.facts.page())),
            cpu_percent: settings.cpu_percent,
            cpus: given.facts.cpus.max(1),
        }
    }

    /// The share of all CPUs, in percent, that storing and loading the budget's traffic takes.
    pub(super) fn cpu_percent(&self, row: &AlgorithmMeasurement) -> f64 {
        let busy_s = row.cpu().seconds() * f64::from(self.pages_per_second);
        100.0 * busy_s / self.cpus as f64
    }
}

impl std::fmt::Display for Budgets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { load_p99, pages_per_second, cpu_percent, .. } = self;
        write!(
            f,
            "loads within {load_p99} and {cpu_percent} % of the CPUs at {pages_per_second} pages/s each way"
        )
    }
}

fn load(disk: Option<Nanos>) -> Nanos {
    disk.map_or(LEAST_LOAD, |read| LEAST_LOAD.max(Nanos(read.0 / LOADS_PER_READ)))
}

/// In pages of the kernel's size, as the measured times are those of a page.
fn traffic(ram: Bytes, page_bytes: u64) -> u32 {
    ((ram.0 / RAM_PER_SECOND).min(MOST_PER_SECOND) / page_bytes).max(1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_disk_gives_loads_more_time() {
        let at = |us| load(Some(Nanos::micros(us)));
        assert_eq!([at(20), at(1_200), at(8_000)], [250, 300, 2_000].map(Nanos::micros));
        assert_eq!(load(None), Nanos::micros(250));
    }

    #[test]
    fn a_small_machine_turns_fewer_pages_over() {
        assert_eq!([124, 1024, 8192].map(|mib| traffic(Bytes::mib(mib), 4096)), [317, 2621, 5000]);
        assert_eq!(traffic(Bytes(0), 4096), 1);
        assert_eq!([16, 64].map(|kib| traffic(Bytes::mib(8192), kib << 10)), [1250, 312], "of larger pages");
    }
}
