//! Each policy on synthetic requests.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

use eke_cache_replay::{Lru, Policy, Request, Sieve, Zipf, loops, mixed, replay, scan};
use eke_cache_store::S3Fifo;
use eke_model::units::Bytes;

/// A tenth of 20,000 keys of 32 KiB each.
const CAPACITY: Bytes = Bytes(20_000 * 32_768 / 10);
const KEYS: u64 = 20_000;

fn zipf(alpha: f64) -> impl Iterator<Item = Request> {
    Zipf::new(KEYS, alpha, 1)
}

fn rate<P: Policy>(trace: impl Iterator<Item = Request>) -> f64 {
    replay::<P>(CAPACITY, trace).hit_rate()
}

#[test]
fn no_policy_beats_perfect_knowledge_and_all_beat_chance() {
    for alpha in [0.6, 0.8, 1.0] {
        let rates = [
            rate::<S3Fifo<1>>(zipf(alpha).take(200_000)),
            rate::<S3Fifo<3>>(zipf(alpha).take(200_000)),
            rate::<Sieve>(zipf(alpha).take(200_000)),
            rate::<Lru>(zipf(alpha).take(200_000)),
        ];
        // Caching the most requested tenth is nearly optimal for independent requests.
        let share = |keys: u64| (1..=keys).map(|k| (k as f64).powf(-alpha)).sum::<f64>();
        let best = share(KEYS / 10) / share(KEYS);
        assert!(rates.iter().all(|&rate| rate > 0.1 && rate < best + 0.01), "{alpha}: {rates:?} {best}");
        assert!(rates[0] > rates[3], "{alpha}: S3-FIFO {} is not better than LRU {}", rates[0], rates[3]);
        assert!(rates[2] > rates[3], "{alpha}: SIEVE {} is not better than LRU {}", rates[2], rates[3]);
    }
}

/// Requests by Zipf's law, alternating with keys that never repeat.
fn disturbed(alpha: f64) -> impl Iterator<Item = Request> {
    mixed(zipf(alpha).take(200_000), scan(1 << 32, 200_000), 2)
}

#[test]
fn a_concurrent_scan_costs_s3_fifo_little_and_lru_much() {
    let kept = |with: f64, without: f64| 2.0 * with / without;
    let s3 = kept(rate::<S3Fifo>(disturbed(0.8)), rate::<S3Fifo>(zipf(0.8).take(200_000)));
    let lru = kept(rate::<Lru>(disturbed(0.8)), rate::<Lru>(zipf(0.8).take(200_000)));
    assert!(s3 > 0.95, "S3-FIFO keeps {s3} of its hits");
    assert!(s3 > lru + 0.1, "LRU keeps {lru}, S3-FIFO {s3}");
}

/// Hits in a small hot set, after a scan of ten times the capacity.
fn hits_after_scan<P: Policy>() -> f64 {
    let hot = || loops(0, 500, 3);
    let before = replay::<P>(CAPACITY, hot()).hits;
    let whole = replay::<P>(CAPACITY, hot().chain(scan(1 << 32, KEYS)).chain(loops(0, 500, 1))).hits;
    (whole - before) as f64 / 500.0
}

#[test]
fn one_long_scan_empties_lru_and_leaves_the_hot_set_in_s3_fifo() {
    assert_eq!(hits_after_scan::<Lru>(), 0.0);
    assert!(hits_after_scan::<S3Fifo<1>>() > 0.99, "{}", hits_after_scan::<S3Fifo<1>>());
    assert!(hits_after_scan::<S3Fifo<3>>() > 0.99, "{}", hits_after_scan::<S3Fifo<3>>());
}

#[test]
fn ghosts_let_a_loop_larger_than_the_cache_have_some_hits() {
    let trace = || loops(0, KEYS / 8, 20);
    assert_eq!(rate::<Lru>(trace()), 0.0);
    assert!(rate::<S3Fifo>(trace()) > 0.3, "{}", rate::<S3Fifo>(trace()));
}

#[test]
fn small_blocks_count_for_less() {
    let light = |trace: Vec<Request>| trace.into_iter().map(|r| Request { weight: r.weight / 4, ..r });
    let trace: Vec<Request> = zipf(0.8).take(100_000).collect();
    assert!(rate::<S3Fifo>(light(trace.clone())) > rate::<S3Fifo>(trace.into_iter()) + 0.1);
}

#[test]
fn a_block_larger_than_the_cache_is_never_cached() {
    let trace = vec![Request { key: 1, weight: 2000 }; 5];
    assert_eq!(replay::<S3Fifo>(Bytes(1000), trace).hits, 0);
}
