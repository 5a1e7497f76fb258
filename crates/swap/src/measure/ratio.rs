//! From readings of `mm_stat` to a ratio and its lower bound. Pure.
//!
//! The allocator (zsmalloc) keeps one partly filled group of pages for each size of object. In a sample of a few thousand pages these make up a tenth
//! of its memory; in a device in use they do not matter. So the first part of the sample (a quarter, from all processes alike) only fills them. The
//! ratio is of the pages *after* that: the cost of a page is the growth of `mem_used_total` per page stored. Where few pages were stored, as on a
//! slow machine, groups are partly filled after that as well: a page costs at most [`MOST_PER_DATA`] times its data.
//!
//! The rest is stored in batches in the order of the processes, so that the batches differ as programs do. With the batches'
//! costs c_1..c_n, their standard deviation s and t the 95 % quantile of Student's distribution for n - 1:
//!
//! ```text
//! ratio     = page / (q * c)                     c: growth of all batches / pages of all batches
//! ratio_low = page / (q * (c + t * s / sqrt n))  q: share of pages that are not same-filled (those are free)
//! ratio_high = page / (q * (c - t * s / sqrt n))
//! ```
//!
//! Each bound holds with 95 %, so both together are the 90 % interval.
//!
//! It works on costs and not on ratios because memory adds up by cost. No page costs less than [`TABLE_BYTES`].

/// The size of zram's table for each page, stored or not (`struct zram_table_entry`, 64-bit). It bounds any ratio.
pub const TABLE_BYTES: f64 = 16.0;

/// What full groups take at most for a byte of data: the steps between zsmalloc's sizes of objects, and what is left at the end of a group, are less
/// than a fifth. A page that does not fit into an object counts as 4096 bytes of data.
const MOST_PER_DATA: f64 = 1.25;

/// The factor for a conservative ratio without batches to compare.
const UNKNOWN_SPREAD: f64 = 0.9;

/// One reading while pages are stored; all counters since the device was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checkpoint {
    /// Pages stored.
    pub pages: usize,
    /// `mem_used_total`.
    pub mem_used_bytes: u64,
    /// `compr_data_size`.
    pub compressed_bytes: u64,
    /// `huge_pages`.
    pub huge_pages: u64,
}

/// The ratio from the readings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Bytes stored per byte of memory.
    pub ratio: f64,
    /// Its lower bound.
    pub ratio_low: f64,
    /// Its upper bound.
    pub ratio_high: f64,
    /// The incompressible share of all pages, same-filled included.
    pub incompressible_share: f64,
}

/// The ratio from readings in order of time, the first of them after the warm-up. `stored_share` (0..=1) is the share of the sampled pages that are not
/// same-filled. With fewer than two batches it is that of all pages, too low because of partly filled groups. `None` if nothing was stored.
pub fn from_checkpoints(readings: &[Checkpoint], stored_share: f64, page_bytes: usize) -> Option<Ratio> {
    let last = readings.last().filter(|c| c.pages > 0)?;
    let batches = batch_costs(readings);
    let share = last.huge_pages as f64 / last.pages as f64 * stored_share;
    let (cost_bytes, margin_bytes) = match (readings.first(), batches.len()) {
        (Some(first), 2..) => (cost(first, last)?, margin(&batches)),
        _ => {
            let total = cost(&Checkpoint::default(), last)?;
            (total, total / UNKNOWN_SPREAD - total)
        }
    };
    let ratio = |cost: f64| page_bytes as f64 / (stored_share * cost).max(TABLE_BYTES);
    Some(Ratio {
        ratio: ratio(cost_bytes),
        ratio_low: ratio(cost_bytes + margin_bytes),
        ratio_high: ratio(cost_bytes - margin_bytes),
        incompressible_share: share,
    })
}

/// The cost of a page in each batch, in bytes.
pub(crate) fn batch_costs(readings: &[Checkpoint]) -> Vec<f64> {
    readings.windows(2).filter_map(|two| cost(&two[0], &two[1])).collect()
}

/// Bytes of memory per page stored between two readings. The allocator may shrink in between, never below the data, or begin new groups.
fn cost(from: &Checkpoint, to: &Checkpoint) -> Option<f64> {
    let pages = to.pages.checked_sub(from.pages).filter(|n| *n > 0)?;
    let grown = to.mem_used_bytes.saturating_sub(from.mem_used_bytes);
    let data = to.compressed_bytes.saturating_sub(from.compressed_bytes);
    Some((grown as f64).min(data as f64 * MOST_PER_DATA).max(data as f64) / pages as f64)
}

/// t * s / sqrt n.
fn margin(costs: &[f64]) -> f64 {
    let n = costs.len() as f64;
    let mean = costs.iter().sum::<f64>() / n;
    let variance = costs.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / (n - 1.0);
    student_95(costs.len() - 1) * (variance / n).sqrt()
}

/// One-sided 95 % quantile of Student's distribution.
fn student_95(degrees: usize) -> f64 {
    const TABLE: [f64; 10] = [6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812];
    TABLE.get(degrees.saturating_sub(1)).copied().unwrap_or(1.645)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn readings(costs: &[u64]) -> Vec<Checkpoint> {
        let mut at =
            Checkpoint { pages: 100, mem_used_bytes: 500_000, compressed_bytes: 100_000, huge_pages: 0 };
        let mut all = vec![at];
        for cost in costs {
            at.pages += 100;
            at.mem_used_bytes += 100 * cost;
            at.compressed_bytes += 90 * cost;
            all.push(at);
        }
        all
    }

    #[test]
    fn the_warm_up_does_not_count() {
        let r = from_checkpoints(&readings(&[1024, 1024, 1024]), 1.0, 4096).unwrap();
        assert_eq!((r.ratio, r.ratio_low), (4.0, 4.0));
    }

    #[test]
    fn same_filled_pages_are_free() {
        let r = from_checkpoints(&readings(&[1024, 1024]), 0.5, 4096).unwrap();
        assert_eq!(r.ratio, 8.0);
    }

    #[test]
    fn batches_that_differ_lower_the_safe_ratio() {
        let even = from_checkpoints(&readings(&[1000, 1100, 1000, 1100]), 1.0, 4096).unwrap();
        let uneven = from_checkpoints(&readings(&[100, 2000, 100, 2000]), 1.0, 4096).unwrap();
        assert!((even.ratio - uneven.ratio).abs() < 1e-9);
        assert!(uneven.ratio_low < even.ratio_low && even.ratio_low < even.ratio, "{even:?} {uneven:?}");
        assert!(uneven.ratio_high > even.ratio_high && even.ratio_high > even.ratio, "{even:?} {uneven:?}");
    }

    #[test]
    fn one_reading_gives_the_total_and_a_margin() {
        let one = Checkpoint { pages: 10, mem_used_bytes: 20_480, compressed_bytes: 19_000, huge_pages: 2 };
        let r = from_checkpoints(&[one], 1.0, 4096).unwrap();
        assert_eq!((r.ratio, r.incompressible_share), (2.0, 0.2));
        assert!((r.ratio_low - 1.8).abs() < 1e-9);
        assert_eq!(from_checkpoints(&[], 1.0, 4096), None);
        assert_eq!(from_checkpoints(&[Checkpoint::default()], 1.0, 4096), None);
    }

    #[test]
    fn partly_filled_groups_of_a_few_pages_do_not_count() {
        // 24 pages of 700 bytes of data each, in 24 new groups of 16 KiB: an emulated machine had 0.43 to 1 by that.
        let at = |pages: usize| Checkpoint {
            pages,
            mem_used_bytes: pages as u64 * 16_384,
            compressed_bytes: pages as u64 * 700,
            huge_pages: 0,
        };
        let r = from_checkpoints(&[at(24), at(48), at(72)], 1.0, 4096).unwrap();
        assert!((r.ratio - 4096.0 / 875.0).abs() < 1e-9, "{r:?}");
        assert!(from_checkpoints(&[at(24)], 1.0, 4096).unwrap().ratio > 4.0);
    }

    proptest! {
        #[test]
        fn always_finite_and_low_is_never_above(
            raw in proptest::collection::vec((0usize..10_000, 0u64..1 << 40, 0u64..1 << 40, 0u64..10_000), 0..12), share in 0.0f64..=1.0
        ) {
            let readings: Vec<Checkpoint> = raw.into_iter()
                .map(|(pages, mem_used_bytes, compressed_bytes, huge_pages)| Checkpoint { pages, mem_used_bytes, compressed_bytes, huge_pages })
                .collect();
            if let Some(r) = from_checkpoints(&readings, share, 4096) {
                prop_assert!(r.ratio.is_finite() && r.ratio_low.is_finite() && r.ratio_high.is_finite());
                prop_assert!(r.ratio_high >= r.ratio * (1.0 - 1e-9));
                prop_assert!(r.ratio_low <= r.ratio * (1.0 + 1e-9));
            }
        }
    }
}
