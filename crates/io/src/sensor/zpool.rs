//! Latencies of ZFS pools, from `zpool iostat`. ZFS always keeps these histograms, and its block requests have no class.

use std::collections::BTreeMap;
use std::process::Command;

use eke_model::units::Bytes;

use super::Refused;
use crate::class::{Class, Mode, Operation};
use crate::counters::{Classes, Latency};
use crate::histogram::{BUCKETS, Histogram, bucket_of};

/// Columns of `zpool iostat -w`. Their order: total_wait, disk_wait, syncq_wait, asyncq_wait, each for reads and writes; then scrub, trim (since
/// 0.8) and rebuild (since 2.0).
const READ: usize = 0;
const WRITE: usize = 1;
const SCRUB: usize = 8;
const TRIM: usize = 9;

/// Parses `zpool iostat -w -H -p`: an empty line, a pool's name, then a line for each bucket with tabs, its last nanosecond first (`2^(i+1) - 1`;
/// print_iostat_histo() in OpenZFS' cmd/zpool/zpool_main.c). Without an interval the counters run since the pool was imported. Any other line
/// ends its pool.
pub fn parse(text: &str) -> BTreeMap<String, Classes> {
    let mut pools: BTreeMap<String, Vec<[u64; BUCKETS]>> = BTreeMap::new();
    let mut current: Option<&mut Vec<[u64; BUCKETS]>> = None;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match row(line) {
            Some((bucket, counts)) => {
                let Some(columns) = current.as_deref_mut() else { continue };
                columns.resize(columns.len().max(counts.len()), [0; BUCKETS]);
                columns.iter_mut().zip(counts).for_each(|(column, count)| column[bucket] = count);
            }
            None if line.contains('\t') => current = None,
            None => current = Some(pools.entry(line.trim().to_owned()).or_default()),
        }
    }
    pools.into_iter().map(|(name, columns)| (name, classes(&columns))).collect()
}

fn row(line: &str) -> Option<(usize, Vec<u64>)> {
    let mut words = line.split('\t');
    let last_ns: u64 = words.next()?.trim().parse().ok()?;
    let counts: Vec<u64> = words.map(|word| word.trim().parse()).collect::<Result<_, _>>().ok()?;
    (!counts.is_empty()).then(|| (bucket_of(last_ns), counts))
}

fn classes(columns: &[[u64; BUCKETS]]) -> Classes {
    let histogram =
        |at: usize| columns.get(at).map_or_else(Histogram::default, |b| Histogram::of_buckets(*b));
    let latency = |at: usize| {
        let mut queue = histogram(at + 4);
        queue.merge(&histogram(at + 6));
        Latency { whole: histogram(at), device: histogram(at + 2), queue, bytes: Bytes(0), errors: 0 }
    };
    let of = |operation| Class::new(operation, Mode::Any);
    let only = |at: usize| Latency { whole: histogram(at), ..Latency::default() };
    let mut classes = Classes::from([
        (of(Operation::Read), latency(READ)),
        (of(Operation::Write), latency(WRITE)),
        (of(Operation::Discard), only(TRIM)),
        (of(Operation::Other), only(SCRUB)),
    ]);
    classes.retain(|_, latency| !latency.whole.is_empty());
    classes
}

/// The reason why pools have no bytes: `zpool iostat -H -p` prints operations and bytes per second since the import, which are no counters.
pub const NO_BYTES: &str = "zpool iostat has no byte counters, so pools are shown without bytes";

/// Runs `zpool`. `None`: this machine has no ZFS.
///
/// # Errors
/// The message of `zpool`.
pub fn read(is_loaded: bool) -> Option<Result<BTreeMap<String, Classes>, Refused>> {
    if !is_loaded {
        return None;
    }
    let mut command = Command::new("zpool");
    command.args(["iostat", "-wHp"]).env("LC_ALL", "C");
    Some(match command.output() {
        Ok(output) if output.status.success() => Ok(parse(&String::from_utf8_lossy(&output.stdout))),
        Ok(output) => Err(Refused::new("zpool iostat -wHp", String::from_utf8_lossy(&output.stderr).trim())),
        Err(e) => Err(Refused::new("zpool iostat -wHp", e)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the form of print_iostat_histo() with -H -p: two pools, eleven columns.
    fn recorded() -> String {
        let pool = |name: &str, rows: &[(u32, [u64; 11])]| {
            let mut text = format!("\n{name}\n");
            for i in 0..37u32 {
                let counts = rows.iter().find(|(at, _)| *at == i).map_or([0; 11], |(_, counts)| *counts);
                text += &format!("{}", (1u64 << (i + 1)) - 1);
                counts.iter().for_each(|count| text += &format!("\t{count}"));
                text += "\n";
            }
            text
        };
        pool(
            "tank",
            &[(15, [90, 0, 95, 7, 80, 0, 0, 1, 0, 3, 0]), (22, [10, 500, 5, 493, 20, 0, 0, 499, 2, 0, 0])],
        ) + &pool("boot", &[(10, [1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0])])
    }

    #[test]
    fn pools_are_read_by_class() {
        let pools = parse(&recorded());
        assert_eq!(pools.keys().collect::<Vec<_>>(), ["boot", "tank"]);
        let tank = &pools["tank"];
        let read = &tank[&Class::new(Operation::Read, Mode::Any)];
        assert_eq!((read.whole.count, read.device.count, read.queue.count), (100, 100, 100));
        assert_eq!(read.whole.buckets[15], 90);
        assert_eq!(read.whole.quantile_ns(0.5).map(|ns| (32_768.0..65_536.0).contains(&ns)), Some(true));
        let write = &tank[&Class::new(Operation::Write, Mode::Any)];
        assert_eq!((write.whole.count, write.queue.buckets[22], write.device.buckets[15]), (500, 499, 7));
        assert_eq!(tank[&Class::new(Operation::Discard, Mode::Any)].whole.count, 3);
        assert_eq!(pools["boot"].len(), 1, "idle classes are absent");
    }

    #[test]
    fn older_and_broken_output_is_no_panic() {
        let old = parse("\ntank\n1\t5\t6\n3\t1\t2\n");
        assert_eq!(old["tank"][&Class::new(Operation::Read, Mode::Any)].whole.count, 6);
        assert!(parse("no pools available\n").values().all(Classes::is_empty));
        assert!(parse("1\t2\t3\n").is_empty(), "numbers without a pool");
        assert_eq!(parse("\ntank\nx\ty\n1\t2\n")["tank"].len(), 0);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(text in "(?s).{0,200}") {
            let _ = parse(&text);
        }
    }
}
