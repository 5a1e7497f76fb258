//! What a block of 64 KiB costs on each way, and what follows. Pure.
//!
//! With B for reading it below, H for a hit (found, decompressed, checked), P for compressing it, F for the round trip to this
//! process, and h for the share of blocks that are hits:
//!
//! | way | a block costs |
//! | --- | --- |
//! | taken in | h·H + (1 − h)·(B + P) + F |
//! | not taken in | B + F |
//! | passthrough | B |
//!
//! - *Not taken in* where compressing costs more than hits give back, (1 − h)·P > 1.25·h·(B − H), once the file was read
//!   twice over: before that there can be no hits. That finds what does not compress (it is never held), what streams once
//!   and what is evicted before it is wanted again. A file larger than the store has room for that is read from its start on
//!   is such one after 2 MiB already.
//! - *PassthroughMode* where the way through costs more than 1.25·B, and no more below 1.1·B, if B is more than 1.5·(H + F)
//!   (3 while no processor is idle) as well: where hits would give little, either way will do. For a file of which nothing is known yet
//!   it is compared as if all were hits: H + F > 1.25·B. On a slow disk neither is ever true: F is small beside B.

/// The round trip of a request of 64 KiB through FUSE that is answered from memory, less the copy that a read from the page
/// cache has too: 52 µs less 9 to 12 µs (Linux 6.18, two virtual CPUs, fuser 0.18).
pub const ROUND_TRIP_US: f32 = 40.0;

/// Of a file that is not taken in, one run of blocks in so many is.
pub const TRY_ONE_IN: u32 = 64;

/// So many times dearer must the present way be.
const MARGIN: f32 = 1.25;
/// A passthrough file comes back below this...
const MARGIN_BACK: f32 = 1.1;
/// ... if hits would be so many times cheaper than reads the backing file.
const PROMISE: f32 = 1.5;
/// The same while no processor is idle: then it is not the disk that is waited for, and what is measured is loaded.
const PROMISE_BUSY: f32 = 3.0;

/// Who needs so long for a block on the mean, in microseconds, is no disk as fast as memory behind busy processors (which was
/// seen to take 80 to 500).
const SLOW_US: f32 = 1000.0;
/// The same once files use passthrough: what is still read here waits behind readers that are not seen.
const SLOW_BESIDE_PASSTHROUGH_US: f32 = 4000.0;

/// Reads of so many blocks tell the least that a block takes: shorter ones may have been read ahead by the kernel.
pub const TELLING: u32 = 4;

/// Blocks without which nothing is concluded: from one file at an open; from one file on its way; from all.
const ENOUGH_AT_OPEN: u32 = 64;
const ENOUGH: u32 = 256;
const ENOUGH_STREAM: u32 = 32;
const ENOUGH_OF_ALL: u64 = 64;

/// A new value's weight in a running estimate.
const WEIGHT: f32 = 1.0 / 32.0;

/// Running estimates over all files, in microseconds for a block of 64 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Costs {
    /// To read it below: the time of a read, without waiting for a processor, by the blocks in it and by how many read at once.
    pub backing_us: f32,
    /// The same, undisturbed: [`undisturbed`].
    pub backing_least_us: f32,
    /// No processor is idle, so that whoever reads the backing file waits for the kernel's threads too.
    pub busy: bool,
    /// To find it in the store and decompress it.
    pub hit_us: f32,
    /// To compress it.
    pub compress_us: f32,
    /// Blocks read from the backing file so far.
    pub backing_blocks: u64,
    /// Hits so far.
    pub hit_blocks: u64,
}

/// What was seen of a file since the last decision about it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Seen {
    /// Its size in blocks; 0: not known.
    pub size: u64,
    /// Blocks read from the backing file.
    pub below: u32,
    /// Blocks found in the store.
    pub hits: u32,
    /// Runs of blocks read from the backing file.
    pub runs: u32,
    /// Those that began where one before them had ended, or a little after.
    pub sequential: u32,
    /// What a block of it takes below, in microseconds; 0: not known.
    pub backing_us: f32,
    /// The same, undisturbed.
    pub backing_least_us: f32,
}

/// What is done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Its blocks are taken in.
    TakenIn,
    /// They are not, but for a sample.
    NotTakenIn,
    /// At its next open the kernel is to read the backing file itself.
    Passthrough,
}

/// Why a file is treated otherwise from now on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reason {
    /// Taken in: hits give back more than compressing costs.
    Pays {
        /// h·(B − H) for a block.
        gain_us: f32,
        /// (1 − h)·P for a block.
        price_us: f32,
    },
    /// Not taken in: compressing costs more than hits give back.
    NoReturn {
        /// h·(B − H) for a block.
        gain_us: f32,
        /// (1 − h)·P for a block.
        price_us: f32,
    },
    /// Not taken in: it streams, and the store could not hold it.
    Stream {
        /// Its size in blocks of 64 KiB.
        size_blocks: u64,
        /// What the store has room for.
        room_blocks: u64,
    },
    /// PassthroughMode: the way through costs more.
    BackingFaster {
        /// What a block costs through this process.
        through_us: f32,
        /// What it costs below.
        backing_us: f32,
    },
    /// No more passthrough: the way through costs about as little or less.
    BackingNotFaster {
        /// What a block costs through this process.
        through_us: f32,
        /// What it costs below.
        backing_us: f32,
    },
}

impl Reason {
    /// What it is the reason of.
    pub fn verdict(self) -> Verdict {
        match self {
            Self::Pays { .. } | Self::BackingNotFaster { .. } => Verdict::TakenIn,
            Self::NoReturn { .. } | Self::Stream { .. } => Verdict::NotTakenIn,
            Self::BackingFaster { .. } => Verdict::Passthrough,
        }
    }

    /// As a sentence for people.
    pub fn sentence(self) -> String {
        let mib = |blocks: u64| blocks / 16;
        match self {
            Self::Pays { gain_us, price_us } => {
                format!("taken in: hits give {gain_us:.0} µs a block, compressing costs {price_us:.0} µs")
            }
            Self::NoReturn { gain_us, price_us } => {
                format!("not taken in: hits give {gain_us:.0} µs a block, compressing costs {price_us:.0} µs")
            }
            Self::Stream { size_blocks, room_blocks } => format!(
                "not taken in: streams, {} MiB, with room for {} MiB",
                mib(size_blocks),
                mib(room_blocks)
            ),
            Self::BackingFaster { through_us, backing_us } => {
                format!("passthrough: {backing_us:.0} µs a block below, {through_us:.0} µs through the cache")
            }
            Self::BackingNotFaster { through_us, backing_us } => {
                format!(
                    "no more passthrough: {backing_us:.0} µs a block below, {through_us:.0} µs through the cache"
                )
            }
        }
    }
}

/// A running estimate of what something takes when nothing disturbs it: the tenth part of all values that are least. 0 is none yet.
pub fn undisturbed(estimate: f32, value: f32) -> f32 {
    match value {
        _ if estimate == 0.0 => value,
        value if value < estimate => estimate * 0.91,
        _ => estimate * 1.01,
    }
}

/// A running estimate with a new value in it; 0 is none yet.
pub fn running(estimate: f32, value: f32) -> f32 {
    if estimate == 0.0 { value } else { estimate + (value - estimate) * WEIGHT }
}

/// A decision while the file is read, if it is another one. The store has room for `room` blocks of files.
pub fn on_the_way(now: Verdict, seen: &Seen, costs: &Costs, room: u64) -> Option<Reason> {
    let (gain_us, price_us) = balance(now, seen, costs);
    let loses = price_us > MARGIN * gain_us;
    match now {
        Verdict::TakenIn if loses && streams(seen, room) => {
            Some(Reason::Stream { size_blocks: seen.size, room_blocks: room })
        }
        Verdict::TakenIn if loses && twice_over(seen) => Some(Reason::NoReturn { gain_us, price_us }),
        Verdict::NotTakenIn if gain_us > MARGIN * price_us && seen.hits >= 2 => {
            Some(Reason::Pays { gain_us, price_us })
        }
        // A passthrough file that is read here all the same is a probe, or had to be cached: what is seen counts at its next open.
        _ => None,
    }
}

/// A decision at an open, if it is another one.
pub fn at_open(now: Verdict, seen: &Seen, costs: &Costs) -> Option<Reason> {
    let (through_us, backing_us) = compared(now, seen, costs)?;
    match now {
        Verdict::Passthrough if through_us < MARGIN_BACK * backing_us && promises(costs, backing_us) => {
            Some(Reason::BackingNotFaster { through_us, backing_us })
        }
        Verdict::TakenIn | Verdict::NotTakenIn if through_us > MARGIN * backing_us => {
            Some(Reason::BackingFaster { through_us, backing_us })
        }
        _ => None,
    }
}

fn promises(costs: &Costs, backing_us: f32) -> bool {
    let promise = if costs.busy { PROMISE_BUSY } else { PROMISE };
    promise * (costs.hit_us + ROUND_TRIP_US) < backing_us
}

/// The way through this process and the way below, from the file's own stats, or from those of all as if all were hits.
fn compared(now: Verdict, seen: &Seen, costs: &Costs) -> Option<(f32, f32)> {
    if seen.below.saturating_add(seen.hits) >= ENOUGH_AT_OPEN {
        let backing_us = below_by(now, seen, costs);
        let h = hit_share(now, seen);
        let through = match now {
            Verdict::NotTakenIn => backing_us,
            _ => h * costs.hit_us + (1.0 - h) * (backing_us + costs.compress_us),
        };
        return (backing_us > 0.0).then_some((through + ROUND_TRIP_US, backing_us));
    }
    let enough = costs.backing_blocks.min(costs.hit_blocks) >= ENOUGH_OF_ALL;
    enough.then_some((costs.hit_us + ROUND_TRIP_US, below_by(now, &Seen::default(), costs)))
}

/// What hits give for a block asked for, and what compressing costs.
fn balance(now: Verdict, seen: &Seen, costs: &Costs) -> (f32, f32) {
    let h = hit_share(now, seen);
    (h * (backing_us(seen, costs) - costs.hit_us).max(0.0), (1.0 - h) * costs.compress_us)
}

/// What reading the backing file takes, to decide by. On busy processors what is measured is mostly how busy they are, and a disk that is as
/// fast as memory seems slow; then the least of it counts. Not of a disk that is slow in any case: what it had at hand once
/// says nothing of the rest.
fn below_by(now: Verdict, seen: &Seen, costs: &Costs) -> f32 {
    let mean_us = backing_us(seen, costs);
    let slow_us = if now == Verdict::Passthrough { SLOW_BESIDE_PASSTHROUGH_US } else { SLOW_US };
    match seen.backing_least_us {
        _ if !costs.busy || mean_us > slow_us => mean_us,
        own if own > 0.0 => own,
        _ => costs.backing_least_us,
    }
}

fn backing_us(seen: &Seen, costs: &Costs) -> f32 {
    if seen.backing_us > 0.0 { seen.backing_us } else { costs.backing_us }
}

/// The share of hits; of a file of which only a sample is taken in, what it would be.
fn hit_share(now: Verdict, seen: &Seen) -> f32 {
    let (hits, asked) = (seen.hits as f32, (seen.hits as f32 + seen.below as f32).max(1.0));
    match now {
        Verdict::NotTakenIn => (hits * TRY_ONE_IN as f32 / asked).min(1.0),
        _ => hits / asked,
    }
}

fn twice_over(seen: &Seen) -> bool {
    seen.below >= ENOUGH && seen.size > 0 && u64::from(seen.below) >= 2 * seen.size
}

fn streams(seen: &Seen, room: u64) -> bool {
    seen.size > room && seen.below >= ENOUGH_STREAM && seen.sequential as f32 >= 0.75 * seen.runs as f32
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

    fn seen(size: u64, below: u32, hits: u32) -> Seen {
        Seen { size, below, hits, runs: below / 4, ..Seen::default() }
    }

    #[test]
    fn a_file_read_twice_without_hits_is_not_taken_in_and_comes_back_with_them() {
        let slow = costs(1500.0);
        assert_eq!(on_the_way(Verdict::TakenIn, &seen(300, 500, 0), &slow, u64::MAX), None);
        let reason = on_the_way(Verdict::TakenIn, &seen(300, 600, 0), &slow, u64::MAX).unwrap();
        assert_eq!(reason, Reason::NoReturn { gain_us: 0.0, price_us: 90.0 });
        assert_eq!(on_the_way(Verdict::NotTakenIn, &seen(300, 640, 1), &slow, u64::MAX), None);
        let back = on_the_way(Verdict::NotTakenIn, &seen(300, 640, 4), &slow, u64::MAX).unwrap();
        assert_eq!(back.verdict(), Verdict::TakenIn);
    }

    #[test]
    fn a_stream_is_known_by_its_order_and_size() {
        let stream = Seen { runs: 10, sequential: 9, ..seen(5000, 40, 0) };
        let decided = |seen: &Seen, room| on_the_way(Verdict::TakenIn, seen, &costs(1500.0), room);
        assert_eq!(decided(&stream, 4000), Some(Reason::Stream { size_blocks: 5000, room_blocks: 4000 }));
        assert_eq!(decided(&stream, 6000), None);
        assert_eq!(decided(&Seen { sequential: 5, ..stream }, 4000), None);
        assert_eq!(decided(&Seen { hits: 20, ..stream }, 4000), None, "it is read again");
    }

    #[test]
    fn passthrough_is_for_disks_that_are_faster_than_hits_or_files_without_hits_on_fast_disks() {
        let unknown = Seen::default();
        assert!(matches!(
            at_open(Verdict::TakenIn, &unknown, &costs(40.0)),
            Some(Reason::BackingFaster { .. })
        ));
        assert_eq!(at_open(Verdict::TakenIn, &unknown, &costs(127.0)), None);
        assert!(at_open(Verdict::TakenIn, &seen(100, 100, 0), &costs(127.0)).is_some());
        assert_eq!(at_open(Verdict::TakenIn, &seen(100, 20, 180), &costs(127.0)), None);
        assert_eq!(at_open(Verdict::NotTakenIn, &seen(100, 500, 0), &costs(1500.0)), None);
    }

    #[test]
    fn what_disturbs_counts_for_little() {
        // Three values in four are ten times what they would be.
        let values = (0..1000).map(|turn| if turn % 4 == 0 { 50.0 } else { 500.0 });
        let (low, mean) = values.fold((0.0, 0.0), |(low, mean), v| (undisturbed(low, v), running(mean, v)));
        assert!((40.0..70.0).contains(&low) && mean > 240.0, "{low} {mean}");
    }

    #[test]
    fn on_busy_processors_the_least_counts() {
        let idle = Costs { backing_least_us: 15.0, ..costs(127.0) };
        let hits = seen(100, 20, 180);
        assert_eq!(at_open(Verdict::TakenIn, &hits, &idle), None);
        let busy = Costs { busy: true, ..idle };
        assert!(matches!(at_open(Verdict::TakenIn, &hits, &busy), Some(Reason::BackingFaster { .. })));
        let slow = Seen { backing_us: 1500.0, backing_least_us: 15.0, ..hits };
        assert_eq!(at_open(Verdict::TakenIn, &slow, &busy), None);
    }

    #[test]
    fn what_waits_behind_passthrough_readers_stays_passthrough_and_what_got_slow_does_not() {
        let busy = Costs { backing_least_us: 15.0, busy: true, ..costs(127.0) };
        let back = |backing_us, backing_least_us, costs: &Costs| {
            at_open(Verdict::Passthrough, &Seen { backing_us, backing_least_us, ..seen(100, 20, 180) }, costs)
        };
        assert_eq!(back(1500.0, 15.0, &busy), None);
        assert_eq!(back(1500.0, 150.0, &busy), None, "loaded");
        assert!(back(1500.0, 400.0, &busy).is_some());
        assert!(back(5000.0, 15.0, &busy).is_some());
        assert!(back(1500.0, 15.0, &Costs { busy: false, ..busy }).is_some());
    }

    #[test]
    fn nothing_is_concluded_from_little() {
        let few = Costs { hit_blocks: 3, ..costs(40.0) };
        assert_eq!(at_open(Verdict::TakenIn, &seen(100, 10, 0), &few), None);
        assert_eq!(on_the_way(Verdict::TakenIn, &seen(1, 10, 0), &few, 0), None);
    }

    proptest! {
        #[test]
        fn the_same_stats_do_not_swing(
            backing_us in 1f32..5000.0, below in 0u32..2000, hits in 0u32..2000, size in 0u64..1000,
        ) {
            let (costs, seen) = (costs(backing_us), seen(size, below, hits));
            let first = at_open(Verdict::TakenIn, &seen, &costs);
            if let Some(Reason::BackingFaster { .. }) = first {
                prop_assert_eq!(at_open(Verdict::Passthrough, &seen, &costs), None);
            }
            if let Some(Reason::BackingNotFaster { .. }) = at_open(Verdict::Passthrough, &seen, &costs) {
                prop_assert_eq!(first, None);
            }
        }

        #[test]
        fn a_slow_disk_is_never_passed_passthrough(
            backing_us in 1001f32..1e6, least in 1f32..1e6, busy: bool, below in 0u32..2000, hits in 0u32..2000,
        ) {
            let costs = Costs { backing_least_us: least, busy, ..costs(backing_us) };
            prop_assert_eq!(at_open(Verdict::TakenIn, &seen(100, below, hits), &costs), None);
        }
    }
}
