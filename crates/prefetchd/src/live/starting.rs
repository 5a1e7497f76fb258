//! What programs read while they start. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

/// A start is over after this.
const LONGEST: Duration = Duration::from_secs(60);
/// The most processes; a log-in starts many.
const MOST: usize = 64;

/// The processes of programs that started lately.
#[derive(Debug, Default)]
pub(super) struct Starting {
    /// When each began, and what it had read at the last sample.
    processes: BTreeMap<u32, (Duration, u64)>,
    read_bytes: u64,
}

impl Starting {
    /// A process of a program has begun that did not run.
    pub fn begins(&mut self, pid: u32, now: Duration) {
        if self.processes.len() < MOST {
            // What it read before it became another program counts once.
            self.processes.entry(pid).or_insert((now, 0)).0 = now;
        }
    }

    /// Bytes that starting programs read from disks, never decreasing. `read_bytes` has those of a process.
    pub fn read_bytes(&mut self, now: Duration, read_bytes: impl Fn(u32) -> Option<u64>) -> u64 {
        let total = &mut self.read_bytes;
        self.processes.retain(|pid, (began, before)| {
            let Some(bytes) = read_bytes(*pid) else { return false };
            *total = total.saturating_add(bytes.saturating_sub(*before));
            *before = bytes;
            now.saturating_sub(*began) < LONGEST
        });
        self.read_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_count_until_the_start_is_over() {
        let s = Duration::from_secs;
        let mut starting = Starting::default();
        starting.begins(10, s(0));
        starting.begins(11, s(0));
        assert_eq!(starting.read_bytes(s(0), |_| Some(0)), 0);
        assert_eq!(starting.read_bytes(s(1), |pid| (pid == 10).then_some(100)), 100, "the other has ended");
        starting.begins(10, s(1));
        assert_eq!(starting.read_bytes(s(61), |_| Some(150)), 150);
        assert_eq!(starting.read_bytes(s(62), |_| Some(900)), 150, "it has started");
        (0..1000).for_each(|pid| starting.begins(pid, s(70)));
        assert_eq!(starting.processes.len(), MOST);
    }
}
