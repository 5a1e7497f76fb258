//! What is measured.

use eke_results::report::Metric;
use eke_results::report::{less, more};

pub const HITS: &str = "hits, bytes";
pub const HIT_COUNT: &str = "hits";
pub const HIT_P50: &str = "time of a hit";
pub const HIT_P99: &str = "time of a slow hit";
pub const HIT_CPU: &str = "CPU time of a hit";
pub const MISSES: &str = "misses";
pub const MISS_CPU: &str = "CPU time of a miss";
pub const INSERTS: &str = "insertions, bytes";
pub const INSERT_COUNT: &str = "insertions";
pub const INSERT_P50: &str = "time of an insertion";
pub const INSERT_CPU: &str = "CPU time of an insertion";
pub const MIXED: &str = "mixed";
pub const HIT_RATIO: &str = "mixed, hit ratio";
pub const MEMORY: &str = "mixed, memory";
pub const BY_BYTE: &str = "mixed, held by memory";
pub const SIZE_HITS: &str = "hits by block size";
pub const SIZE_P50: &str = "time of a hit by block size";
pub const SIZE_INSERTS: &str = "insertions by block size";
pub const SIZE_RATIO: &str = "held by block size";
pub const ZERO_HITS: &str = "zero blocks, hits";
pub const ZERO_INSERTS: &str = "zero blocks, insertions";
pub const NOISE: &str = "noise offered";

/// In the order of the table.
pub(super) fn metrics() -> Vec<Metric> {
    vec![
        more(HITS, "bytes of files that hits gave back, blocks in an order by chance, all threads together"),
        more(HIT_COUNT, "the same in blocks"),
        less(HIT_P50, "a single hit, the median"),
        less(HIT_P99, "a single hit, 1 in 100 takes longer"),
        less(HIT_CPU, "on the mean; a busy machine shows the same"),
        more(MISSES, "blocks asked for that are not held"),
        less(MISS_CPU, "on the mean; a busy machine shows the same"),
        more(INSERTS, "bytes of files that came in and were packed, others going for them"),
        more(INSERT_COUNT, "the same in blocks"),
        less(INSERT_P50, "one call that takes a block in, the median"),
        less(INSERT_CPU, "on the mean; a busy machine shows the same"),
        more(
            MIXED,
            "nine reads by Zipf's law (0.8), what misses comes in, and one write; memory for a third of the blocks",
        ),
        more(HIT_RATIO, "of the reads of the mixed load"),
        less(
            MEMORY,
            "what the mixed load's cache holds of this process' memory, as the kernel counts it (RssAnon)",
        ),
        more(BY_BYTE, "bytes of files held for each byte of that memory"),
        more(SIZE_HITS, "hits of one thread, by the size of blocks"),
        less(SIZE_P50, "a single hit, the median, by the size of blocks"),
        more(SIZE_INSERTS, "insertions of one thread, by the size of blocks"),
        more(
            SIZE_RATIO,
            "bytes of files held for each byte of memory by the cache's own account, by the size of blocks",
        ),
        more(ZERO_HITS, "hits of blocks that are all zero, one thread"),
        more(ZERO_INSERTS, "insertions of blocks that are all zero, one thread"),
        more(
            NOISE,
            "blocks offered that do not compress, one thread: eke refuses them, and soon does not try; quick_cache keeps them",
        ),
    ]
}
