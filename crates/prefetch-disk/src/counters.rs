//! `/proc/diskstats` (Documentation/admin-guide/iostats.rst): each block device's counters since it exists.

use eke_linux::parse::disk_stat::{self, DiskStat};
use rustix::fs::makedev;

/// A device's counters. Requests count when they complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Its number, as in `st_dev`.
    pub dev: u64,
    /// Completed reads.
    pub reads: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// The sum of their durations in milliseconds.
    pub read_ms: u64,
    /// Completed writes.
    pub writes: u64,
    /// Their bytes.
    pub written_bytes: u64,
    /// Requests in flight.
    pub in_flight: u64,
}

impl Counters {
    /// The difference to `before`; `in_flight` stays the current value. Counters that went backwards (another device of the same name) count as zero.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            dev: self.dev,
            reads: self.reads.saturating_sub(before.reads),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            read_ms: self.read_ms.saturating_sub(before.read_ms),
            writes: self.writes.saturating_sub(before.writes),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
            in_flight: self.in_flight,
        }
    }

    /// Whether nothing completed and nothing is in flight.
    pub fn is_quiet(self) -> bool {
        self.reads == 0 && self.writes == 0 && self.in_flight == 0
    }
}

/// The counters of all devices; invalid lines are skipped.
pub fn parse(text: &str) -> Vec<Counters> {
    disk_stat::of_all(text)
        .into_iter()
        .map(|((major, minor), stat)| of(makedev(major, minor), &stat))
        .collect()
}

fn of(dev: u64, stat: &DiskStat) -> Counters {
    Counters {
        dev,
        reads: stat.reads.count,
        read_bytes: stat.reads.bytes,
        read_ms: stat.reads.ms,
        writes: stat.writes.count,
        written_bytes: stat.writes.bytes,
        in_flight: stat.in_flight,
    }
}

/// The sum over these devices.
pub fn sum(text: &str, devices: &[u64]) -> Counters {
    let ours = parse(text).into_iter().filter(|c| devices.contains(&c.dev));
    ours.fold(Counters::default(), |sum, c| Counters {
        dev: c.dev,
        reads: sum.reads + c.reads,
        read_bytes: sum.read_bytes + c.read_bytes,
        read_ms: sum.read_ms + c.read_ms,
        writes: sum.writes + c.writes,
        written_bytes: sum.written_bytes + c.written_bytes,
        in_flight: sum.in_flight + c.in_flight,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
   7       1 loop1 1698 50 126498 7695 43327 1182 7531966 273938 0 19264 283305 3 0 6 13 137 1657
 254       0 vda 7251312 967347 4301817538 18811918 1007064 1203201 296731680 1575696 2 1367528 20486405
garbage
   8       0 sda 1 2 3
";

    #[test]
    fn counters_are_read_and_invalid_lines_are_skipped() {
        let all = parse(TEXT);
        assert_eq!(all.iter().map(|c| c.dev).collect::<Vec<_>>(), [makedev(7, 1), makedev(254, 0)]);
        assert_eq!((all[0].reads, all[0].read_bytes, all[0].read_ms), (1698, 126_498 * 512, 7695));
        assert_eq!(
            (all[1].writes, all[1].written_bytes, all[1].in_flight),
            (1_007_064, 296_731_680 * 512, 2)
        );
        assert_eq!(all[0].in_flight, 0);
    }

    #[test]
    fn only_the_given_devices_are_summed() {
        assert_eq!(sum(TEXT, &[makedev(7, 1)]).reads, 1698);
        assert_eq!(sum(TEXT, &[makedev(7, 1), makedev(254, 0)]).reads, 1698 + 7_251_312);
        assert!(sum(TEXT, &[makedev(1, 1)]).is_quiet());
    }

    #[test]
    fn counters_that_went_backwards_count_as_nothing() {
        let (one, two) = (parse(TEXT)[0], parse(TEXT)[1]);
        assert_eq!(two.since(one).reads, 7_251_312 - 1698);
        assert_eq!(one.since(two).reads, 0);
        assert!(!two.since(two).is_quiet(), "two requests are under way");
        assert!(one.since(one).is_quiet());
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_counters_or_none(text in "[0-9a-z \n]{0,200}") {
            let _ = parse(&text);
        }
    }
}
