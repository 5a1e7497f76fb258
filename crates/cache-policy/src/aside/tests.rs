use super::*;

/// What a second adds to the counters, and what the rest is at its end.
#[derive(Clone, Copy)]
struct Load {
    opens: u64,
    hits: u64,
    misses: u64,
    inserted: u64,
    evicted: u64,
    refaulted: Bytes,
    end: Sample,
}

const SLOW: Sample = Sample {
    now: Duration::ZERO,
    opens: 0,
    hits: 0,
    misses: 0,
    inserted: 0,
    evicted: 0,
    hit_us: 40.0,
    miss_us: 8000.0,
    miss_bytes: 65_536,
    raw: Bytes(200 << 20),
    held: Bytes(80 << 20),
    limit: Bytes(82 << 20),
    files: 3000,
    free: Bytes(4 << 20),
    available: Bytes(12 << 20),
    is_full: true,
    refaulted: Bytes(0),
};

/// A full store of content that compresses 2.5 to 1.
const USEFUL: Load =
    Load { opens: 100, hits: 60, misses: 40, inserted: 40, evicted: 40, refaulted: Bytes(0), end: SLOW };

/// A mount whose counters grow by a load each second.
struct Run {
    state: Usefulness,
    total: Sample,
}

impl Run {
    fn of(state: Usefulness) -> Self {
        Self { state, total: Sample::default() }
    }

    /// The first advice other than to stay within so many seconds, and its time.
    fn advice(&mut self, seconds: u64, load: Load) -> Option<(u64, Advice)> {
        (0..seconds).find_map(|_| {
            let before = self.total;
            self.total = Sample {
                now: before.now + Duration::from_secs(1),
                opens: before.opens + load.opens,
                hits: before.hits + load.hits,
                misses: before.misses + load.misses,
                inserted: before.inserted + load.inserted,
                evicted: before.evicted + load.evicted,
                refaulted: before.refaulted + load.refaulted,
                ..load.end
            };
            let advice = self.state.step(self.total);
            (advice != Advice::Stay).then_some((self.total.now.as_secs(), advice))
        })
    }
}

fn reason(load: Load) -> Option<Reason> {
    match Run::of(Usefulness::serving()).advice(300, load)?.1 {
        Advice::Leave(reason) => Some(reason),
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn it_leaves_where_it_gains_nothing_and_stays_where_it_does() {
    let fast = Sample { hit_us: 40.0, miss_us: 90.0, ..SLOW };
    let small = Sample { raw: Bytes::mib(52), held: Bytes::mib(40), files: 30_000, ..SLOW };
    let fits = Sample {
        raw: Bytes::mib(30),
        held: Bytes::mib(12),
        free: Bytes::mib(40),
        available: Bytes::mib(60),
        ..SLOW
    };
    for (name, expected, load) in [
        ("useful", None, USEFUL),
        ("all fits", Some(Reason::Fits), Load { misses: 0, inserted: 0, evicted: 0, end: fits, ..USEFUL }),
        ("fits compressed only", None, Load { misses: 0, inserted: 0, evicted: 0, ..USEFUL }),
        (
            "all in the page cache",
            Some(Reason::Slower),
            Load { hits: 0, misses: 0, inserted: 0, evicted: 0, opens: 5000, ..USEFUL },
        ),
        (
            "a fast disk",
            Some(Reason::Slower),
            Load { opens: 5000, hits: 2000, misses: 3000, end: fast, ..USEFUL },
        ),
        ("small files", Some(Reason::HoldsNoMore), Load { end: small, ..USEFUL }),
        (
            "nothing compresses",
            Some(Reason::HoldsNoMore),
            Load {
                hits: 0,
                inserted: 0,
                evicted: 0,
                end: Sample { raw: Bytes(0), held: Bytes(0), ..SLOW },
                ..USEFUL
            },
        ),
        (
            "filling",
            None,
            Load { hits: 0, evicted: 0, end: Sample { raw: Bytes(0), held: Bytes(0), ..SLOW }, ..USEFUL },
        ),
        ("hardly used", None, Load { opens: 1, hits: 1, misses: 1, end: fast, ..USEFUL }),
    ] {
        assert_eq!(reason(load), expected, "{name}");
    }
}

#[test]
fn windows_must_agree_and_fewer_where_all_fits() {
    let none = Load { opens: 5000, hits: 0, misses: 0, inserted: 0, evicted: 0, ..USEFUL };
    let first = Run::of(Usefulness::serving()).advice(300, none);
    assert_eq!(first, Some((1 + 4 * WINDOW.as_secs(), Advice::Leave(Reason::Slower))));
    let fits = Load { end: Sample { free: Bytes::mib(1024), ..SLOW }, ..none };
    let first = Run::of(Usefulness::serving()).advice(300, fits);
    assert_eq!(first, Some((1 + 2 * WINDOW.as_secs(), Advice::Leave(Reason::Fits))));
    let mut run = Run::of(Usefulness::serving());
    // The first window begins with the first sample.
    assert_eq!(run.advice(1, USEFUL), None);
    for _ in 0..10 {
        let loses = Load { opens: 100_000, ..USEFUL };
        assert_eq!((run.advice(WINDOW.as_secs(), loses), run.advice(WINDOW.as_secs(), USEFUL)), (None, None));
    }
}

#[test]
fn it_returns_when_memory_is_short_and_not_before_the_pause_is_over() {
    let left = |reason| {
        let mut state = Usefulness::serving();
        state.left(Left { reason, disk_us: 0, disk_bytes: 0, vain: 0 }, Duration::ZERO);
        Run::of(state)
    };
    let mut run = left(Reason::Fits);
    let calm = Load { refaulted: Bytes(64 << 10), ..USEFUL };
    assert_eq!(run.advice(600, calm), None, "8 ms of each second");
    let short = Load { refaulted: Bytes::mib(4), ..USEFUL };
    let (at, advice) = run.advice(600, short).unwrap();
    assert!(advice == Advice::Return && at < 600 + 6 * WINDOW.as_secs(), "{at}");

    let (at, _) = left(Reason::HoldsNoMore).advice(10_000, short).unwrap();
    assert!(at >= FIRST_CONTENT.as_secs(), "{at}");
}

#[test]
fn a_return_in_vain_makes_the_next_pause_longer_and_a_useful_one_does_not() {
    let pauses = |lasted: Duration| {
        let (mut state, mut now) = (Usefulness::serving(), Duration::ZERO);
        (0..12)
            .map(|_| {
                let vain = state.vain(now);
                state.left(Left { reason: Reason::Fits, disk_us: 0, disk_bytes: 0, vain }, now);
                let Place::Aside { earliest } = state.place else { unreachable!() };
                let pause = earliest - now;
                state.returned(earliest);
                now = earliest + lasted;
                pause
            })
            .collect::<Vec<_>>()
    };
    let vain = pauses(Duration::from_secs(60));
    assert_eq!((vain[0], vain[1], vain[11]), (FIRST_FITS * WINDOW, 2 * FIRST_FITS * WINDOW, LONGEST_FITS));
    assert!(pauses(SOON).iter().all(|pause| *pause == FIRST_FITS * WINDOW));
}

#[test]
fn a_backup_does_not_empty_a_store_that_was_of_use() {
    let mut run = Run::of(Usefulness::serving());
    assert_eq!(run.advice(1200, USEFUL), None);
    // It opens many files and hits nothing; what it reads displaces little.
    let backup = Load { opens: 1000, hits: 0, misses: 500, inserted: 20, evicted: 20, ..USEFUL };
    let small = Load { end: Sample { raw: Bytes::mib(90), files: 30_000, ..SLOW }, ..backup };
    assert_eq!((run.advice(300, backup), run.advice(30, small)), (None, None));
    // For good it is another matter.
    assert_eq!(run.advice(20_000, backup).map(|(_, advice)| advice), Some(Advice::Leave(Reason::Slower)));
}

#[test]
fn what_nobody_notices_is_no_loss() {
    let few = Load { opens: 100, hits: 0, misses: 0, inserted: 0, evicted: 0, ..USEFUL };
    assert_eq!(Run::of(Usefulness::serving()).advice(600, few), None);
}

#[test]
fn it_returns_for_small_reads_that_keep_the_disk_busy_and_beside_unused_memory_only_once() {
    let aside_after = |vain| {
        let mut state = Usefulness::serving();
        state.left(Left { reason: Reason::Fits, disk_us: 0, disk_bytes: 0, vain }, Duration::ZERO);
        Run::of(state)
    };
    let aside = || aside_after(0);
    // 120 reads of 4 KiB a second.
    let small = Load { refaulted: Bytes(120 * 4096), end: Sample { miss_bytes: 4096, ..SLOW }, ..USEFUL };
    assert_eq!(aside().advice(600, small).map(|(_, advice)| advice), Some(Advice::Return));
    let elsewhere = Load { end: Sample { is_full: false, ..small.end }, ..small };
    assert_eq!(aside().advice(600, elsewhere).map(|(_, advice)| advice), Some(Advice::Return));
    assert_eq!(aside_after(1).advice(600, elsewhere), None);
    assert_eq!(aside_after(1).advice(600, small).map(|(_, advice)| advice), Some(Advice::Return));
    let fast = Sample { miss_us: 30.0, ..SLOW };
    let at_once = Load { refaulted: Bytes::mib(4000), end: fast, ..USEFUL };
    assert_eq!(aside().advice(600, at_once), None, "a disk as fast as memory");
}

#[test]
fn a_lull_after_a_return_is_not_enough() {
    let fits = Sample { raw: Bytes(0), held: Bytes(0), free: Bytes::mib(40), ..SLOW };
    let lull = Load { misses: 0, inserted: 0, evicted: 0, end: fits, ..USEFUL };
    let mut state = Usefulness::serving();
    state.returned(Duration::ZERO);
    let leaves = Run::of(state).advice(600, lull).unwrap();
    assert_eq!(leaves, (1 + 12 * WINDOW.as_secs(), Advice::Leave(Reason::Fits)));
}
