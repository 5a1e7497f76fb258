//! `/sys/block/*/stat` and `/proc/diskstats` (Documentation/ABI/stable/sysfs-block,
//! Documentation/admin-guide/iostats.rst): both have the same counters; the second has each device's number and name
//! before them.

/// Sector size of both files, whatever the device's own is.
pub const SECTOR_BYTES: u64 = 512;

/// Completed requests of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Requests {
    /// Number of requests.
    pub count: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Sum of their durations in milliseconds.
    pub ms: u64,
}

/// Counters of one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskStat {
    /// Reads.
    pub reads: Requests,
    /// Writes.
    pub writes: Requests,
    /// Requests in flight.
    pub in_flight: u64,
    /// Milliseconds with at least one request in flight.
    pub busy_ms: u64,
    /// Discards (Linux 4.18).
    pub discards: Option<Requests>,
    /// Flushes, without bytes (Linux 5.5).
    pub flushes: Option<Requests>,
}

/// Parses `/sys/block/*/stat`; `None` for any other text.
pub fn parse(text: &str) -> Option<DiskStat> {
    let fields: Vec<u64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    of_fields(&fields)
}

/// Parses `/proc/diskstats`: `(MAJOR, MINOR)` and counters of each device. Skips malformed lines.
pub fn of_all(text: &str) -> Vec<((u32, u32), DiskStat)> {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<((u32, u32), DiskStat)> {
    let mut words = line.split_whitespace();
    let device = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let _name = words.next()?;
    let fields: Vec<u64> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
    Some((device, of_fields(&fields)?))
}

fn of_fields(fields: &[u64]) -> Option<DiskStat> {
    if fields.len() < 11 {
        return None;
    }
    let requests = |first: usize| {
        let (count, sectors, ms) = (fields.get(first)?, fields.get(first + 2)?, fields.get(first + 3)?);
        Some(Requests { count: *count, bytes: sectors.saturating_mul(SECTOR_BYTES), ms: *ms })
    };
    let flushes = || Some(Requests { count: *fields.get(15)?, bytes: 0, ms: *fields.get(16)? });
    Some(DiskStat {
        reads: requests(0)?,
        writes: requests(4)?,
        in_flight: fields[8],
        busy_ms: fields[9],
        discards: requests(11),
        flushes: flushes(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_kernels_have_eleven_counters_and_new_ones_more() {
        let old = parse("100 5 2048 300  50 6 4096 700  2 900 1000\n").unwrap();
        assert_eq!(old.reads, Requests { count: 100, bytes: 1 << 20, ms: 300 });
        assert_eq!((old.writes.bytes, old.in_flight, old.busy_ms), (2 << 20, 2, 900));
        assert_eq!((old.discards, old.flushes), (None, None));
        let new = parse("1 0 8 2 3 0 8 4 0 5 6 7 0 16 8 9 18").unwrap();
        assert_eq!(new.discards, Some(Requests { count: 7, bytes: 8192, ms: 8 }));
        assert_eq!(new.flushes, Some(Requests { count: 9, bytes: 0, ms: 18 }));
        assert_eq!((parse(""), parse("1 2 3"), parse("a b c d e f g h i j k")), (None, None, None));
    }

    #[test]
    fn malformed_lines_are_skipped() {
        let text = "\
   7       1 loop1 1698 50 126498 7695 43327 1182 7531966 273938 0 19264 283305 3 0 6 13 137 1657
 254       0 vda 7251312 967347 4301817538 18811918 1007064 1203201 296731680 1575696 2 1367528 20486405
garbage
   8       0 sda 1 2 3
";
        let all = of_all(text);
        assert_eq!(all.iter().map(|(device, _)| *device).collect::<Vec<_>>(), [(7, 1), (254, 0)]);
        assert_eq!((all[0].1.reads.count, all[0].1.reads.bytes), (1698, 126_498 * 512));
        assert_eq!((all[1].1.writes.count, all[1].1.in_flight), (1_007_064, 2));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_counters_or_none(text in "[0-9a-z \n]{0,200}") {
            let _ = (parse(&text), of_all(&text));
        }
    }
}
