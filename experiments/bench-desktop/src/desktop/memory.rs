//! What the kernel says of a viewer: what it holds, and whether it is at work. Text in, data out.

use eke_linux::parse::meminfo::field;
use eke_linux::parse::process_stat;
use eke_model::units::Bytes;

use crate::session::Held;

/// Adds a process by its `/proc/PID/status` (proc_pid_status(5): `RssAnon` and so on, Linux 4.5; `VmSwap`: 2.6.34,
/// without shared memory). The kernel sums per-CPU counters, which costs the process nothing; `smaps_rollup` would hold
/// its memory lock while it walks all of its pages.
pub(super) fn add(held: &mut Held, status: &str) {
    let of = |key| field(status, key).unwrap_or(Bytes(0)).0;
    held.anonymous.0 += of("RssAnon");
    held.swapped.0 += of("VmSwap");
    held.file.0 += of("RssFile") + of("RssShmem");
}

/// What changes while a process does something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Activity {
    /// It runs, or waits for a disk (proc_pid_stat(5), field 3: R or D).
    busy: bool,
    ticks: u64,
    major_faults: u64,
}

impl Activity {
    /// Of `/proc/PID/stat`; nothing of no text.
    pub fn of(text: &str) -> Self {
        process_stat::parse(text).map_or_else(Self::default, |stat| Self {
            busy: matches!(stat.state, 'R' | 'D'),
            ticks: stat.ticks(),
            major_faults: stat.major_faults,
        })
    }

    /// Did it do something since `earlier`, or does it now?
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
        let mut held = Held { documents: 2, ..Held::default() };
        add(&mut held, status);
        add(&mut held, status);
        let kib = |n: u64| Bytes(n * 1024);
        assert_eq!(held, Held { documents: 2, anonymous: kib(200), swapped: kib(100), file: kib(1000) });
        add(&mut held, "");
        assert_eq!(held.anonymous, kib(200));
    }

    #[test]
    fn who_does_nothing_is_idle() {
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
