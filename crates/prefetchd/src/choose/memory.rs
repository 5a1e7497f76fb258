//! How much memory prefetch may fill now.

use std::time::Duration;

use eke_linux::parse::meminfo;
use eke_linux::{Root, read};
use eke_model::config::PrefetchSettings;
use eke_model::units::PageSize;

use crate::group_memory::{self, GroupMemory};
use crate::reclaim::Reclaim;
use eke_prefetch_model::choose::{Allowance, Memory, Occasion, Rules, allowance};
use eke_prefetch_model::learn::Now;

/// The shortest interval for a rate: within less, a few refaults look like many a second.
const LEAST_INTERVAL: Duration = Duration::from_secs(1);

/// Samples memory and keeps the last counters for rates.
#[derive(Debug, Default)]
pub(crate) struct MemorySampler {
    last: Option<(Duration, Counters)>,
    refaults_per_s: f64,
}

/// Counters since the boot, in pages of the machine.
#[derive(Debug, Clone, Copy, Default)]
struct Counters {
    refaulted: u64,
    reclaimed: u64,
    /// Pages that eke and starting programs read.
    expected: u64,
}

impl MemorySampler {
    /// The memory that prefetch may fill on this occasion. `expected_bytes` were read by eke and by programs that were starting, so far: their refaults
    /// do not show that memory is short.
    pub fn allowance(
        &mut self,
        root: &Root,
        settings: &PrefetchSettings,
        occasion: Occasion,
        now: Now,
        expected_bytes: u64,
    ) -> Allowance {
        let memory = self.sample(root, now, expected_bytes);
        let rules = Rules {
            share: f64::from(settings.memory_percent) / 100.0,
            on_battery: settings.on_battery,
            ..Rules::of(memory.total)
        };
        allowance(&memory, &rules, occasion)
    }

    fn sample(&mut self, root: &Root, now: Now, expected_bytes: u64) -> Memory {
        let text = |file: &str| root.read(file).unwrap_or_default();
        let memory = meminfo::parse(&text("proc/meminfo"));
        self.count(now.mono, counters(&text("proc/vmstat"), expected_bytes, root.page_size()));
        // What eke reads counts for its own group.
        let all = GroupMemory { most: memory.total, left: memory.available };
        let own = group_memory::of_process(root, "self").unwrap_or(all);
        Memory {
            total: memory.total.min(own.most),
            available: memory.available.min(own.left),
            refaults_per_s: self.refaults_per_s,
            on_battery: read::on_battery(root) == Some(true),
        }
    }

    /// The rate since the last counters. The next interval includes one that is too short.
    fn count(&mut self, at: Duration, counters: Counters) {
        let Some((before_at, before)) = self.last else {
            self.last = Some((at, counters));
            return;
        };
        let since = at.saturating_sub(before_at);
        if since < LEAST_INTERVAL {
            return;
        }
        self.last = Some((at, counters));
        // Pages that were evicted long ago are refaulted also while the kernel reclaims nothing.
        let is_reclaimed = counters.reclaimed > before.reclaimed;
        let refaulted = counters.refaulted.saturating_sub(before.refaulted);
        let expected = counters.expected.saturating_sub(before.expected);
        let harmful = if is_reclaimed { refaulted.saturating_sub(expected) } else { 0 };
        self.refaults_per_s = harmful as f64 / since.as_secs_f64();
    }
}

fn counters(vmstat: &str, expected_bytes: u64, page: PageSize) -> Counters {
    let Reclaim { refaulted, reclaimed } = Reclaim::parse(vmstat);
    Counters { refaulted, reclaimed, expected: expected_bytes / page.bytes() }
}

#[cfg(test)]
mod tests {
    use eke_model::units::Bytes;

    use super::*;

    const MOST: f64 = 200.0;

    /// The rate after these intervals: seconds, and pages refaulted, reclaimed and expected in each.
    fn rate(intervals: &[(f64, u64, u64, u64)]) -> f64 {
        let (mut sampler, mut at, mut sum) =
            (MemorySampler::default(), Duration::from_secs(100), Counters::default());
        sampler.count(at, sum);
        for (s, refaulted, reclaimed, expected) in intervals {
            at += Duration::from_secs_f64(*s);
            sum.refaulted += refaulted;
            sum.reclaimed += reclaimed;
            sum.expected += expected;
            sampler.count(at, sum);
        }
        sampler.refaults_per_s
    }

    #[test]
    fn a_cold_start_does_not_make_memory_short() {
        assert_eq!(rate(&[(3.0, 30_000, 0, 0)]), 0.0, "nothing is reclaimed");
        assert_eq!(rate(&[(3.0, 30_000, 50_000, 30_000)]), 0.0, "eke and the program read these pages");
        assert!(rate(&[(3.0, 30_000, 50_000, 10_000)]) > MOST, "others reread their pages");
    }

    #[test]
    fn short_intervals_count_with_the_next() {
        assert_eq!(rate(&[(0.01, 20, 1, 0)]), 0.0);
        assert_eq!(rate(&[(0.5, 20, 1, 0), (1.5, 0, 0, 0)]), 10.0);
        assert_eq!(rate(&[(1.0, 300, 1, 0), (0.5, 0, 0, 0)]), 300.0, "the last rate holds on");
    }

    #[test]
    fn ekes_own_group_bounds_what_it_reads() {
        let dir = tempfile::tempdir().unwrap();
        let put = |file: &str, text: &str| eke_testkit::tree::put(dir.path(), file, text);
        let settings = PrefetchSettings { memory_percent: 50, ..PrefetchSettings::default() };
        let now = Now { mono: Duration::ZERO, real_ns: 0 };
        let budget = |occasion| {
            let root = Root::at(dir.path());
            MemorySampler::default().allowance(&root, &settings, occasion, now, 0).budget
        };
        put("proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n");
        put("proc/self/cgroup", "0::/system.slice/eke.service\n");
        assert!(
            [Occasion::Ahead, Occasion::Exec].iter().all(|occasion| budget(*occasion) > Bytes::mib(1000))
        );
        let group = "sys/fs/cgroup/system.slice/eke.service";
        put(&format!("{group}/memory.current"), &format!("{}\n", 100 << 20));
        for limit in ["memory.high", "memory.max"] {
            put(&format!("{group}/{limit}"), &format!("{}\n", 200 << 20));
            assert_eq!(budget(Occasion::Exec), Bytes::mib(36), "{limit}: what is left, without 64 MiB");
            assert_eq!(budget(Occasion::Ahead), Bytes::mib(18), "{limit}");
            put(&format!("{group}/{limit}"), "max\n");
        }
        put("sys/fs/cgroup/system.slice/memory.max", "1\n");
        assert_eq!(budget(Occasion::Ahead), Bytes(0), "a group above it");
    }

    #[test]
    fn counters_are_in_pages_of_the_machine() {
        let vmstat = "workingset_activate_file 12\npgsteal_kswapd 3\npgsteal_direct 4\n";
        let counters = counters(vmstat, 65_536, PageSize::new(16 << 10).unwrap());
        assert_eq!((counters.refaulted, counters.reclaimed, counters.expected), (12, 7, 4));
    }
}
