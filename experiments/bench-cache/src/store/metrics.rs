//! The metrics.

use eke_results::report::Metric;
use eke_results::report::{less, more};

pub const HITS: &str = "hits, bytes";
pub const HIT_COUNT: &str = "hits";
pub const HIT_P50: &str = "hit latency p50";
pub const HIT_P99: &str = "hit latency p99";
pub const HIT_CPU: &str = "CPU time of a hit";
pub const MISSES: &str = "misses";
pub const MISS_CPU: &str = "CPU time of a miss";
pub const INSERTS: &str = "insertions, bytes";
pub const INSERT_COUNT: &str = "insertions";
pub const INSERT_P50: &str = "insertion latency p50";
pub const INSERT_CPU: &str = "CPU time of an insertion";
pub const MIXED: &str = "mixed";
pub const HIT_RATIO: &str = "mixed, hit ratio";
pub const MEMORY: &str = "mixed, memory";
pub const BY_BYTE: &str = "mixed, bytes per byte of memory";
pub const SIZE_HITS: &str = "hits by block size";
pub const SIZE_P50: &str = "hit latency p50 by block size";
pub const SIZE_INSERTS: &str = "insertions by block size";
pub const SIZE_RATIO: &str = "bytes per byte of memory by block size";
pub const ZERO_HITS: &str = "zero blocks, hits";
pub const ZERO_INSERTS: &str = "zero blocks, insertions";
pub const NOISE: &str = "noise offered";

/// All metrics, in the order of the table.
pub(super) fn metrics() -> Vec<Metric> {
    vec![
        more(HITS, "uncompressed bytes of hits in random order, all threads together"),
        more(HIT_COUNT, "the same hits in blocks"),
        less(HIT_P50, "median of single hits"),
        less(HIT_P99, "99th percentile of single hits"),
        less(HIT_CPU, "mean; background load hardly changes it"),
        more(MISSES, "lookups of blocks that are not cached"),
        less(MISS_CPU, "mean; background load hardly changes it"),
        more(INSERTS, "uncompressed bytes inserted into a full cache, which evicts others"),
        more(INSERT_COUNT, "the same insertions in blocks"),
        less(INSERT_P50, "median of calls that insert one block"),
        less(INSERT_CPU, "mean; background load hardly changes it"),
        more(
            MIXED,
            "nine reads by Zipf's law (0.8), each miss inserted, and one write; memory for a third of the blocks",
        ),
        more(HIT_RATIO, "of the reads of the mixed load"),
        less(
            MEMORY,
            "resident anonymous memory of the mixed load's cache, as the kernel counts it (RssAnon)",
        ),
        more(BY_BYTE, "uncompressed bytes cached per byte of that memory"),
        more(SIZE_HITS, "hits of one thread, by block size"),
        less(SIZE_P50, "median of single hits, by block size"),
        more(SIZE_INSERTS, "insertions of one thread, by block size"),
        more(
            SIZE_RATIO,
            "uncompressed bytes cached per byte of memory by the cache's own account, by block size",
        ),
        more(ZERO_HITS, "hits of blocks that are all zero, one thread"),
        more(ZERO_INSERTS, "insertions of blocks that are all zero, one thread"),
        more(
            NOISE,
            "offered blocks that do not compress, one thread: eke refuses them and soon stops trying; quick_cache keeps them",
        ),
    ]
}
