//! What a block of 64 KiB costs on each path, and what follows. Pure.
//!
//! B is the cost of a read of the backing file, H of a hit (lookup, decompression, checksum), P of compression, F of the
//! round trip to this process; h is the share of blocks that are hits:
//!
//! | path | cost of a block |
//! | --- | --- |
//! | admitted | h·H + (1 − h)·(B + P) + F |
//! | declined | B + F |
//! | passthrough | B |
//!
//! - *Declined* if compression costs more than hits save, (1 − h)·P > 1.25·h·(B − H), and the file was read twice over,
//!   because before that there can be no hits. This catches files that do not compress, that stream once, or that are
//!   evicted before they are read again. A file larger than the store that is read from its start counts as a stream after 2
//!   MiB.
//! - *Passthrough* if the path through the store costs more than 1.25·B. It ends when that path costs less than 1.1·B and B
//!   is more than 1.5·(H + F) (3 while no processor is idle); where hits save little, either path will do. For an unknown
//!   file all blocks count as hits: H + F > 1.25·B. On a slow disk that never happens, because F is small compared with B.
//! - *Passthrough* also if the file does not compress and was read once over with hardly a hit: the store keeps nothing of it. It ends when
//!   the file changes, or when a probe finds blocks that compress.
//! - Neither passthrough, nor declined but for a stream, where a block costs the disk much and processors are idle. There the order of
//!   reads and the readahead of this process save more than compression and the round trip cost, also of files that do not compress.
//! - An open that cannot choose passthrough does not decide for it: its reads would cost B + F.
//! - Where hardly any file compresses, an unknown file uses passthrough at once, and one with hits too: the page cache holds as much.

use super::decision::{Content, FAILURES, FileAdmission, Reason};

/// The round trip of a FUSE request of 64 KiB that is answered from memory, minus the copy that a page cache read has too:
/// 52 µs minus 9 to 12 µs (Linux 6.18, two virtual CPUs, fuser 0.18).
pub const ROUND_TRIP_US: f32 = 40.0;

/// Of a declined file, one run of blocks in this many is admitted.
pub const TRY_ONE_IN: u32 = 64;

/// The present path must cost this many times more.
const MARGIN: f32 = 1.25;
/// A passthrough file returns to the cache if that costs less than this...
const MARGIN_BACK: f32 = 1.1;
/// ... and if a hit costs this many times less than a read of the backing file.
const PROMISE: f32 = 1.5;
/// The same while no processor is idle: the measured times include waiting for processors, not only for the disk.
const PROMISE_BUSY: f32 = 3.0;

/// A disk with a higher mean per block, in microseconds, is slow. Behind busy processors, a disk as fast as memory took 80
/// to 500.
const SLOW_US: f32 = 1000.0;
/// The same once files use passthrough: reads by this process then wait behind the kernel's own reads.
const SLOW_BESIDE_PASSTHROUGH_US: f32 = 4000.0;

/// On a disk with a higher mean per block, in microseconds, the order of reads saves more than the round trip of each costs: disks that
/// seek, cards, servers over 1 Gb/s.
const ORDER_PAYS_US: f32 = 400.0;
/// The same for a file that uses passthrough: reads by this process wait behind the kernel's own reads.
const ORDER_PAYS_BESIDE_US: f32 = 1600.0;

/// Only reads of at least this many blocks enter the least cost: the kernel may have read ahead for shorter ones.
pub const MIN_RUN_FOR_LEAST: u32 = 4;

/// The blocks needed for a decision: of one file at an open; of one file while it is read; of a stream; of all files.
const ENOUGH_AT_OPEN: u32 = 64;
const ENOUGH: u32 = 256;
const ENOUGH_STREAM: u32 = 32;
const ENOUGH_OF_ALL: u64 = 64;

/// A file with fewer hits for so many misses has hardly any.
const FEW_HITS: u32 = 16;

/// Hardly anything compresses if this share of the blocks that were read lately does not.
const HARDLY_ANY: f32 = 0.95;

/// The weight of a new value in a running estimate.
const WEIGHT: f32 = 1.0 / 32.0;

/// Running estimates over all files, in microseconds for a block of 64 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Costs {
    /// A read of the backing file: its time without waiting for a processor, divided by its blocks and by the concurrent
    /// reads.
    pub backing_us: f32,
    /// The least cost of the same: [`undisturbed`].
    pub backing_least_us: f32,
    /// No processor is idle, so a read of the backing file also waits for the kernel's threads.
    pub busy: bool,
    /// Lookup in the store and decompression.
    pub hit_us: f32,
    /// Compression.
    pub compress_us: f32,
    /// The share of blocks read lately that do not compress, 0 to 1.
    pub failing: f32,
    /// Blocks read from the backing file so far.
    pub backing_blocks: u64,
    /// Hits so far.
    pub hit_blocks: u64,
}

impl Costs {
    /// What a block of any file takes from the backing file, in microseconds; 0: unknown.
    pub fn disk_us(&self) -> f32 {
        deciding_backing_us(FileAdmission::Admit, &FileHistory::default(), self)
    }
}

/// The reads of a file since the last decision about it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FileHistory {
    /// The file's size in blocks; 0: unknown.
    pub size: u64,
    /// Blocks read from the backing file.
    pub misses: u32,
    /// Blocks found in the store.
    pub hits: u32,
    /// Runs of blocks read from the backing file.
    pub runs: u32,
    /// Runs that began where the last one had ended, or near it.
    pub sequential: u32,
    /// A block's cost from the backing file, in microseconds; 0: unknown.
    pub backing_us: f32,
    /// The least cost of the same.
    pub backing_least_us: f32,
}

/// A running estimate of the cost without disturbance: the tenth percentile of all values. 0: no estimate yet.
pub fn undisturbed(estimate: f32, value: f32) -> f32 {
    match value {
        _ if estimate == 0.0 => value,
        value if value < estimate => estimate * 0.91,
        _ => estimate * 1.01,
    }
}

/// A running estimate with a new value; 0: no estimate yet.
pub fn running(estimate: f32, value: f32) -> f32 {
    if estimate == 0.0 { value } else { estimate + (value - estimate) * WEIGHT }
}

/// The decision while the file is read; `None`: no change. The store has room for `room` blocks of files.
pub fn while_reading(now: FileAdmission, history: &FileHistory, costs: &Costs, room: u64) -> Option<Reason> {
    let (gain_us, price_us) = gain_and_price(now, history, costs);
    let (loses, order_pays) = (price_us > MARGIN * gain_us, order_pays(now, history, costs));
    match now {
        FileAdmission::Admit if loses && streams(history, room) => {
            Some(Reason::Stream { size_blocks: history.size, room_blocks: room })
        }
        FileAdmission::Admit if loses && twice_over(history) && !order_pays => {
            Some(Reason::NoReturn { gain_us, price_us })
        }
        FileAdmission::Decline if gain_us > MARGIN * price_us && history.hits >= 2 => {
            Some(Reason::Pays { gain_us, price_us })
        }
        FileAdmission::Decline if order_pays && history.size <= room => {
            Some(Reason::OrderPays { backing_us: backing_us(history, costs) })
        }
        // Reads of a passthrough file are probes, or it had to be cached: they count at its next open.
        _ => None,
    }
}

/// The decision at an open; `None`: no change.
pub fn at_open(now: FileAdmission, history: &FileHistory, costs: &Costs, content: Content) -> Option<Reason> {
    if does_not_pay(now, history, costs, content) {
        return match content {
            _ if now == FileAdmission::Passthrough => None,
            Content::Fails { .. } => Some(Reason::Incompressible),
            _ => Some(Reason::LikeOthers { percent: (costs.failing * 100.0) as u8 }),
        };
    }
    let (through_us, backing_us) = costs_of_paths(now, history, costs)?;
    let order_pays = order_pays(now, history, costs);
    match now {
        FileAdmission::Passthrough
            if (order_pays || through_us < MARGIN_BACK * backing_us) && promises(costs, backing_us) =>
        {
            Some(Reason::BackingNotFaster { through_us, backing_us })
        }
        FileAdmission::Admit | FileAdmission::Decline if !order_pays && through_us > MARGIN * backing_us => {
            Some(Reason::BackingFaster { through_us, backing_us })
        }
        _ => None,
    }
}

/// True if the file does not compress as far as is known, by itself or by others.
fn does_not_pay(now: FileAdmission, history: &FileHistory, costs: &Costs, content: Content) -> bool {
    let (hardly_any, is_so_now) = (costs.failing > HARDLY_ANY, now == FileAdmission::Passthrough);
    match content {
        Content::Compresses => false,
        _ if order_pays(now, history, costs) => false,
        Content::Unknown => hardly_any && (is_so_now || history.misses.saturating_add(history.hits) == 0),
        Content::Fails { blocks } => {
            let fails = blocks >= history.size.clamp(1, FAILURES);
            let few_hits = history.hits <= history.misses / FEW_HITS;
            fails && (is_so_now || hardly_any || once_over(history) && few_hits)
        }
    }
}

/// True if reads in this process's order and with its readahead save the disk more than the round trips cost.
fn order_pays(now: FileAdmission, history: &FileHistory, costs: &Costs) -> bool {
    let least_us = if now == FileAdmission::Passthrough { ORDER_PAYS_BESIDE_US } else { ORDER_PAYS_US };
    !costs.busy && backing_us(history, costs) > least_us
}

fn promises(costs: &Costs, backing_us: f32) -> bool {
    let promise = if costs.busy { PROMISE_BUSY } else { PROMISE };
    promise * (costs.hit_us + ROUND_TRIP_US) < backing_us
}

/// The cost of the path through this process, and of the backing file: from the file's own reads, or from those of all files
/// as if all were hits.
fn costs_of_paths(now: FileAdmission, history: &FileHistory, costs: &Costs) -> Option<(f32, f32)> {
    if history.misses.saturating_add(history.hits) >= ENOUGH_AT_OPEN {
        let backing_us = deciding_backing_us(now, history, costs);
        let h = hit_share(now, history);
        let through = match now {
            FileAdmission::Decline => backing_us,
            _ => h * costs.hit_us + (1.0 - h) * (backing_us + costs.compress_us),
        };
        return (backing_us > 0.0).then_some((through + ROUND_TRIP_US, backing_us));
    }
    let enough = costs.backing_blocks.min(costs.hit_blocks) >= ENOUGH_OF_ALL;
    enough.then_some((costs.hit_us + ROUND_TRIP_US, deciding_backing_us(now, &FileHistory::default(), costs)))
}

/// The savings by hits for a requested block, and the cost of its compression.
fn gain_and_price(now: FileAdmission, history: &FileHistory, costs: &Costs) -> (f32, f32) {
    let h = hit_share(now, history);
    (h * (backing_us(history, costs) - costs.hit_us).max(0.0), (1.0 - h) * costs.compress_us)
}

/// The cost of a read of the backing file for a decision. On busy processors the measured mean is mostly their load, and a
/// disk as fast as memory seems slow; then the least cost counts. It does not count for a disk that is slow anyway: a few
/// reads from its cache prove nothing about the rest.
fn deciding_backing_us(now: FileAdmission, history: &FileHistory, costs: &Costs) -> f32 {
    let mean_us = backing_us(history, costs);
    let slow_us = if now == FileAdmission::Passthrough { SLOW_BESIDE_PASSTHROUGH_US } else { SLOW_US };
    match history.backing_least_us {
        _ if !costs.busy || mean_us > slow_us => mean_us,
        own if own > 0.0 => own,
        // Without a read of many blocks there is none.
        _ if costs.backing_least_us > 0.0 => costs.backing_least_us,
        _ => mean_us,
    }
}

fn backing_us(history: &FileHistory, costs: &Costs) -> f32 {
    if history.backing_us > 0.0 { history.backing_us } else { costs.backing_us }
}

/// The share of hits. For a declined file, of which only a sample is admitted, the share extrapolated from the sample.
fn hit_share(now: FileAdmission, history: &FileHistory) -> f32 {
    let (hits, asked) = (history.hits as f32, (history.hits as f32 + history.misses as f32).max(1.0));
    match now {
        FileAdmission::Decline => (hits * TRY_ONE_IN as f32 / asked).min(1.0),
        _ => hits / asked,
    }
}

fn twice_over(history: &FileHistory) -> bool {
    history.misses >= ENOUGH && history.size > 0 && u64::from(history.misses) >= 2 * history.size
}

fn once_over(history: &FileHistory) -> bool {
    history.size > 0 && u64::from(history.misses) >= history.size.min(ENOUGH.into())
}

fn streams(history: &FileHistory, room: u64) -> bool {
    history.size > room
        && history.misses >= ENOUGH_STREAM
        && history.sequential as f32 >= 0.75 * history.runs as f32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn costs(backing_us: f32) -> Costs {
        Costs {
            backing_us,
            hit_us: 25.0,
            compress_us: 90.0,
            backing_blocks: 1000,
            hit_blocks: 1000,
            ..Costs::default()
        }
    }

    fn history(size: u64, misses: u32, hits: u32) -> FileHistory {
        FileHistory { size, misses, hits, runs: misses / 4, ..FileHistory::default() }
    }

    #[test]
    fn a_file_read_twice_without_hits_is_declined_and_comes_back_with_them() {
        let slow = costs(1500.0);
        let busy = Costs { busy: true, ..slow };
        for costs in [&busy, &costs(300.0)] {
            assert_eq!(while_reading(FileAdmission::Admit, &history(300, 500, 0), costs, u64::MAX), None);
            let reason = while_reading(FileAdmission::Admit, &history(300, 600, 0), costs, u64::MAX).unwrap();
            assert_eq!(reason, Reason::NoReturn { gain_us: 0.0, price_us: 90.0 });
        }
        assert_eq!(while_reading(FileAdmission::Admit, &history(300, 600, 0), &slow, u64::MAX), None);
        assert_eq!(while_reading(FileAdmission::Decline, &history(300, 640, 1), &busy, u64::MAX), None);
        let back = while_reading(FileAdmission::Decline, &history(300, 640, 4), &busy, u64::MAX).unwrap();
        assert_eq!(back.admission(), FileAdmission::Admit);
    }

    #[test]
    fn a_stream_is_known_by_its_order_and_size() {
        let stream = FileHistory { runs: 10, sequential: 9, ..history(5000, 40, 0) };
        let decided =
            |history: &FileHistory, room| while_reading(FileAdmission::Admit, history, &costs(1500.0), room);
        assert_eq!(decided(&stream, 4000), Some(Reason::Stream { size_blocks: 5000, room_blocks: 4000 }));
        assert_eq!(decided(&stream, 6000), None);
        assert_eq!(decided(&FileHistory { sequential: 5, ..stream }, 4000), None);
        assert_eq!(decided(&FileHistory { hits: 20, ..stream }, 4000), None, "it is read again");
    }

    fn opened(now: FileAdmission, history: &FileHistory, costs: &Costs) -> Option<Reason> {
        at_open(now, history, costs, Content::Compresses)
    }

    #[test]
    fn what_does_not_compress_passes_through_until_it_does() {
        let slow = Costs { busy: true, ..costs(1500.0) };
        let at = |now, history: &FileHistory, blocks| {
            at_open(now, history, &slow, Content::Fails { blocks }).map(Reason::admission)
        };
        let (admit, passthrough) = (FileAdmission::Admit, FileAdmission::Passthrough);
        let read_once = history(100, 100, 0);
        for now in [admit, FileAdmission::Decline] {
            assert_eq!(
                at_open(now, &read_once, &slow, Content::Fails { blocks: 8 }),
                Some(Reason::Incompressible)
            );
        }
        assert_eq!(at(admit, &read_once, 7), None, "too few blocks were tried");
        assert_eq!(at(admit, &history(3, 3, 0), 3), Some(passthrough), "all blocks of a small file were");
        assert_eq!(at(admit, &history(100, 99, 0), 8), None, "not all of it was read");
        assert_eq!(at(admit, &history(9000, 256, 0), 8), Some(passthrough));
        assert_eq!(at(admit, &history(100, 100, 7), 8), None, "a part of it compresses");
        assert_eq!(at(passthrough, &history(100, 0, 0), 8), None, "it stays");
        for content in [Content::Compresses, Content::Unknown] {
            let back = at_open(passthrough, &FileHistory::default(), &slow, content);
            assert_eq!(back.map(Reason::admission), Some(admit), "{content:?}");
        }
    }

    #[test]
    fn on_a_slow_disk_reads_keep_their_order_also_of_what_does_not_compress() {
        let (read_once, fails) = (history(100, 100, 0), Content::Fails { blocks: 8 });
        for (us, expected) in [(300.0, Some(Reason::Incompressible)), (500.0, None), (1500.0, None)] {
            assert_eq!(at_open(FileAdmission::Admit, &read_once, &costs(us), fails), expected, "{us}");
        }
        let failing = Costs { failing: 0.99, ..costs(1500.0) };
        let new = history(100, 0, 0);
        assert_eq!(at_open(FileAdmission::Admit, &new, &failing, Content::Unknown), None);
        for (us, expected) in [(1500.0, None), (1700.0, Some(FileAdmission::Admit))] {
            let idle_again = Costs { failing: 0.99, ..costs(us) };
            let back = at_open(FileAdmission::Passthrough, &new, &idle_again, fails);
            assert_eq!(back.map(Reason::admission), expected, "{us}");
        }
        let declined =
            |history: &FileHistory, room| while_reading(FileAdmission::Decline, history, &costs(500.0), room);
        assert_eq!(declined(&read_once, 4000), Some(Reason::OrderPays { backing_us: 500.0 }));
        assert_eq!(declined(&history(5000, 40, 0), 4000), None, "a stream");
    }

    #[test]
    fn where_hardly_anything_compresses_an_unknown_file_passes_through() {
        let at = |failing, now, history: &FileHistory, content| {
            at_open(now, history, &Costs { failing, busy: true, ..costs(1500.0) }, content)
        };
        let (new, admit) = (history(100, 0, 0), FileAdmission::Admit);
        assert_eq!(at(0.96, admit, &new, Content::Unknown), Some(Reason::LikeOthers { percent: 96 }));
        assert_eq!(at(0.9, admit, &new, Content::Unknown), None);
        assert_eq!(at(0.96, admit, &history(100, 9, 0), Content::Unknown), None, "it is being read");
        assert_eq!(
            at(0.96, FileAdmission::Passthrough, &history(100, 9, 0), Content::Unknown),
            None,
            "it stays"
        );
        assert_eq!(at(0.96, admit, &new, Content::Compresses), None);
        let with_hits = history(100, 100, 300);
        assert_eq!(at(0.96, admit, &with_hits, Content::Fails { blocks: 8 }), Some(Reason::Incompressible));
        let back = at(0.9, FileAdmission::Passthrough, &new, Content::Unknown);
        assert_eq!(back.map(Reason::admission), Some(admit), "others compress again");
    }

    #[test]
    fn passthrough_is_for_disks_that_are_faster_than_hits_or_files_without_hits_on_fast_disks() {
        let unknown = FileHistory::default();
        assert!(matches!(
            opened(FileAdmission::Admit, &unknown, &costs(40.0)),
            Some(Reason::BackingFaster { .. })
        ));
        assert_eq!(opened(FileAdmission::Admit, &unknown, &costs(127.0)), None);
        assert!(opened(FileAdmission::Admit, &history(100, 100, 0), &costs(127.0)).is_some());
        assert_eq!(opened(FileAdmission::Admit, &history(100, 20, 180), &costs(127.0)), None);
        assert_eq!(opened(FileAdmission::Decline, &history(100, 500, 0), &costs(1500.0)), None);
    }

    #[test]
    fn disturbed_values_count_for_little() {
        // Three values in four are ten times the undisturbed cost.
        let values = (0..1000).map(|number| if number % 4 == 0 { 50.0 } else { 500.0 });
        let (low, mean) = values.fold((0.0, 0.0), |(low, mean), v| (undisturbed(low, v), running(mean, v)));
        assert!((40.0..70.0).contains(&low) && mean > 240.0, "{low} {mean}");
    }

    #[test]
    fn on_busy_processors_the_least_counts() {
        let idle = Costs { backing_least_us: 15.0, ..costs(127.0) };
        let hits = history(100, 20, 180);
        assert_eq!(opened(FileAdmission::Admit, &hits, &idle), None);
        let busy = Costs { busy: true, ..idle };
        assert!(matches!(opened(FileAdmission::Admit, &hits, &busy), Some(Reason::BackingFaster { .. })));
        let slow = FileHistory { backing_us: 1500.0, backing_least_us: 15.0, ..hits };
        assert_eq!(opened(FileAdmission::Admit, &slow, &busy), None);
    }

    #[test]
    fn on_busy_processors_short_reads_alone_do_not_make_a_disk_fast() {
        let busy = Costs { busy: true, backing_least_us: 0.0, ..costs(900.0) };
        assert_eq!(opened(FileAdmission::Admit, &FileHistory::default(), &busy), None);
        assert_eq!(opened(FileAdmission::Admit, &history(1, 20, 180), &busy), None);
    }

    #[test]
    fn files_behind_passthrough_readers_keep_passthrough_and_slow_ones_do_not() {
        let busy = Costs { backing_least_us: 15.0, busy: true, ..costs(127.0) };
        let back = |backing_us, backing_least_us, costs: &Costs| {
            opened(
                FileAdmission::Passthrough,
                &FileHistory { backing_us, backing_least_us, ..history(100, 20, 180) },
                costs,
            )
        };
        assert_eq!(back(1500.0, 15.0, &busy), None);
        assert_eq!(back(1500.0, 150.0, &busy), None, "loaded");
        assert!(back(1500.0, 400.0, &busy).is_some());
        assert!(back(5000.0, 15.0, &busy).is_some());
        assert!(back(1500.0, 15.0, &Costs { busy: false, ..busy }).is_some());
    }

    #[test]
    fn nothing_is_decided_from_few_blocks() {
        let few = Costs { hit_blocks: 3, ..costs(40.0) };
        assert_eq!(opened(FileAdmission::Admit, &history(100, 10, 0), &few), None);
        assert_eq!(while_reading(FileAdmission::Admit, &history(1, 10, 0), &few, 0), None);
    }

    proptest! {
        #[test]
        fn the_same_stats_do_not_swing(
            backing_us in 1f32..5000.0, misses in 0u32..2000, hits in 0u32..2000, size in 0u64..1000,
        ) {
            let (costs, history) = (costs(backing_us), history(size, misses, hits));
            let first = opened(FileAdmission::Admit, &history, &costs);
            if let Some(Reason::BackingFaster { .. }) = first {
                prop_assert_eq!(opened(FileAdmission::Passthrough, &history, &costs), None);
            }
            if let Some(Reason::BackingNotFaster { .. }) = opened(FileAdmission::Passthrough, &history, &costs) {
                prop_assert_eq!(first, None);
            }
        }

        #[test]
        fn files_on_a_slow_disk_never_use_passthrough(
            backing_us in 1001f32..1e6, least in 1f32..1e6, busy: bool, misses in 0u32..2000, hits in 0u32..2000,
        ) {
            let costs = Costs { backing_least_us: least, busy, ..costs(backing_us) };
            prop_assert_eq!(opened(FileAdmission::Admit, &history(100, misses, hits), &costs), None);
        }
    }
}
