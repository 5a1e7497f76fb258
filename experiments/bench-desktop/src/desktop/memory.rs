//! A viewer's memory and activity, parsed from `/proc`. Text in, data out.

use eke_linux::parse::meminfo::field;
use eke_linux::parse::process_stat;
use eke_model::units::Bytes;

use crate::session::MemoryUse;

/// Adds a process by its `/proc/PID/status` (proc_pid_status(5): `RssAnon` and so on, Linux 4.5; `VmSwap`: 2.6.34,
/// without shared memory). The kernel sums per-CPU counters, which costs the process nothing. Reading `smaps_rollup` would
/// hold the process's memory lock while the kernel walks all of its pages.
pub(super) fn add(total: &mut MemoryUse, status: &str) {
    let of = |key| field(status, key).unwrap_or(Bytes(0)).0;
    total.anonymous.0 += of("RssAnon");
    total.swapped.0 += of("VmSwap");
    total.file.0 += of("RssFile") + of("RssShmem");
}

/// State and counters that change while a process works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Activity {
    /// The process runs or waits for a disk (proc_pid_stat(5), field 3: R or D).
    busy: bool,
    ticks: u64,
    major_faults: u64,
}

impl Activity {
    /// From the text of `/proc/PID/stat`. Empty text means no activity.
    pub fn of(text: &str) -> Self {
        process_stat::parse(text).map_or_else(Self::default, |stat| Self {
            busy: matches!(stat.state, 'R' | 'D'),
            ticks: stat.ticks(),
            major_faults: stat.major_faults,
        })
    }

    /// Whether the process worked since `earlier`, or works now.
    pub fn since(&self, earlier: &Self) -> bool {
        self.busy || (self.ticks, self.major_faults) != (earlier.ticks, earlier.major_faults)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_summed() {
        let status =
            "VmRSS:\t 600 kB\nRssAnon:\t 100 kB\nRssFile:\t 300 kB\nRssShmem:\t 200 kB\nVmSwap:\t 50 kB\n";
        let mut total = MemoryUse { documents: 2, ..MemoryUse::default() };
        add(&mut total, status);
        add(&mut total, status);
        let kib = |n: u64| Bytes(n * 1024);
        assert_eq!(
            total,
            MemoryUse { documents: 2, anonymous: kib(200), swapped: kib(100), file: kib(1000) }
        );
        add(&mut total, "");
        assert_eq!(total.anonymous, kib(200));
    }

    #[test]
    fn a_process_without_new_work_is_idle() {
        let stat = |state, faults, ticks| {
            Activity::of(&format!(
                "42 (a) b) {state} 1 1 1 0 -1 4 0 0 {faults} 0 {ticks} 12 0 0 20 0 1 0 1 1 1"
            ))
        };
        let before = stat("S", 7, 30);
        assert!(!stat("S", 7, 30).since(&before));
        assert!(stat("R", 7, 30).since(&before) && stat("D", 7, 30).since(&before));
        assert!(stat("S", 8, 30).since(&before) && stat("S", 7, 31).since(&before));
        assert!(!Activity::of("").since(&Activity::default()));
    }
}
