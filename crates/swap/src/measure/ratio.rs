//! From readings of `mm_stat` to a ratio and its lower bound. Pure.
//!
//! The cost of a page is its data (`compr_data_size`) times the allocator's memory for a byte of data. zsmalloc keeps one partly filled group of pages
//! for each size of object. In a device in use these do not matter; in a sample of a few thousand pages they make up a tenth of its memory. So the
//! first part of the sample (a quarter, from all processes alike) only fills them, and the growth of `mem_used_total` counts after that. Even then
//! it is by chance how full they are: of 700 pages on a slow machine, zstd's level 1 had a better ratio than its level 3 by that. So the growth counts
//! as far as it exceeds this chance, and else the [usual](USUAL_PER_DATA) memory does. With g the growth for each byte of data:
//!
//! ```text
//! k = usual + (g - usual) * S^2 / (S^2 + e^2)    S: how far k is from the usual; e: chance's part of the growth, for each byte of data
//! ```
//!
//! The rest is stored in batches in the order of the processes, so that the batches differ as programs do. With the batches'
//! data for each page d_1..d_n, their standard deviation s and t the 95 % quantile of Student's distribution for n - 1:
//!
//! ```text
//! ratio     = page / (q * k * d)             d: data of all batches / pages of all batches
//! ratio_low = page / (q * (k * d + m))       q: share of pages that are not same-filled (those are free)
//! ratio_high = page / (q * (k * d - m))      m^2 = (k * t * s / sqrt n)^2 + (1.645 * d)^2 * S^2 * e^2 / (S^2 + e^2)
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

/// Memory for a byte of data in full groups: sizes are rounded up to classes a 256th of a page apart, and objects leave a rest in their group. Measured on
/// Linux 6.18 with 4 KiB pages: 1.02 to 1.03.
pub(crate) const USUAL_PER_DATA: f64 = 1.03;

/// How far another kernel, algorithm or content is from that, as a standard deviation.
const SPREAD_PER_DATA: f64 = 0.03;

/// The standard deviation of what partly filled groups add to the growth, in pages: a hundred sizes in use, each with a group of some pages that is
/// anyhow full at the first reading, and at the last.
const CHANCE_PAGES: f64 = 10.0;

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

impl Checkpoint {
    /// Memory as the allocator would take it, for data that a library compressed: `per_data` bytes for each byte, a whole page for one that is not compressed.
    pub(crate) fn allocate(&mut self, per_data: f64) {
        let whole = self.huge_pages * rustix::param::page_size() as u64;
        let rest = self.compressed_bytes.saturating_sub(whole);
        self.mem_used_bytes = whole + (rest as f64 * per_data) as u64;
    }
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
        (Some(first), 2..) => {
            let (data, per_data) = (data(first, last)?, PerData::of(&[growth(first, last)], page_bytes));
            let (of_batches, of_memory) =
                (per_data.bytes * margin(&batches), NORMAL_95 * per_data.spread * data);
            (per_data.bytes * data, of_batches.hypot(of_memory))
        }
        _ => {
            let total = USUAL_PER_DATA * data(&Checkpoint::default(), last)?;
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

/// The data of a page in each batch, in bytes.
pub(crate) fn batch_costs(readings: &[Checkpoint]) -> Vec<f64> {
    readings.windows(2).filter_map(|two| data(&two[0], &two[1])).collect()
}

/// Bytes of data per page stored between two readings.
fn data(from: &Checkpoint, to: &Checkpoint) -> Option<f64> {
    let pages = to.pages.checked_sub(from.pages).filter(|n| *n > 0)?;
    Some(to.compressed_bytes.saturating_sub(from.compressed_bytes) as f64 / pages as f64)
}

/// Bytes of memory and of data that were added between two readings.
pub(crate) fn growth(from: &Checkpoint, to: &Checkpoint) -> (f64, f64) {
    let grown = to.mem_used_bytes.saturating_sub(from.mem_used_bytes);
    let data = to.compressed_bytes.saturating_sub(from.compressed_bytes);
    (grown as f64, data as f64)
}

/// The allocator's memory for a byte of data, with its standard deviation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PerData {
    pub bytes: f64,
    pub spread: f64,
}

impl PerData {
    /// From the growths of memory and of data on one device or several. The allocator may shrink in between, never below the data, or begin new
    /// groups.
    pub(crate) fn of(growths: &[(f64, f64)], page_bytes: usize) -> Self {
        let grown: f64 = growths.iter().map(|(grown, _)| grown).sum();
        let data = growths.iter().map(|(_, data)| data).sum::<f64>().max(1.0);
        let chance = CHANCE_PAGES * page_bytes as f64 * (growths.len() as f64).sqrt() / data;
        let trust = SPREAD_PER_DATA.powi(2) / (SPREAD_PER_DATA.powi(2) + chance.powi(2));
        let own = (grown / data).clamp(1.0, MOST_PER_DATA);
        Self {
            bytes: USUAL_PER_DATA + (own - USUAL_PER_DATA) * trust,
            spread: SPREAD_PER_DATA * (1.0 - trust).sqrt(),
        }
    }
}

/// t * s / sqrt n.
fn margin(costs: &[f64]) -> f64 {
    let n = costs.len() as f64;
    let mean = costs.iter().sum::<f64>() / n;
    let variance = costs.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / (n - 1.0);
    student_95(costs.len() - 1) * (variance / n).sqrt()
}

/// One-sided 95 % quantile of the normal distribution.
const NORMAL_95: f64 = 1.645;

/// One-sided 95 % quantile of Student's distribution.
fn student_95(degrees: usize) -> f64 {
    const TABLE: [f64; 10] = [6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812];
    TABLE.get(degrees.saturating_sub(1)).copied().unwrap_or(NORMAL_95)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Batches of a thousand pages, with so much data for each page and the usual memory.
    fn readings(data: &[u64]) -> Vec<Checkpoint> {
        let mut at =
            Checkpoint { pages: 1000, mem_used_bytes: 5_000_000, compressed_bytes: 1_000_000, huge_pages: 0 };
        let mut all = vec![at];
        for data in data {
            at.pages += 1000;
            at.compressed_bytes += 1000 * data;
            at.mem_used_bytes += 1030 * data;
            all.push(at);
        }
        all
    }

    fn ratio(readings: &[Checkpoint]) -> Ratio {
        from_checkpoints(readings, 1.0, 4096).unwrap()
    }

    #[test]
    fn the_warm_up_does_not_count() {
        assert!((ratio(&readings(&[1024, 1024, 1024])).ratio - 4.0 / 1.03).abs() < 1e-9);
    }

    #[test]
    fn same_filled_pages_are_free() {
        let r = from_checkpoints(&readings(&[1024, 1024]), 0.5, 4096).unwrap();
        assert!((r.ratio - 8.0 / 1.03).abs() < 1e-9);
    }

    #[test]
    fn batches_that_differ_lower_the_safe_ratio() {
        let even = ratio(&readings(&[1000, 1100, 1000, 1100]));
        let uneven = ratio(&readings(&[100, 2000, 100, 2000]));
        assert!((even.ratio - uneven.ratio).abs() < 1e-9);
        assert!(uneven.ratio_low < even.ratio_low && even.ratio_low < even.ratio, "{even:?} {uneven:?}");
        assert!(uneven.ratio_high > even.ratio_high && even.ratio_high > even.ratio, "{even:?} {uneven:?}");
    }

    #[test]
    fn one_reading_gives_the_total_and_a_margin() {
        let one = Checkpoint { pages: 10, mem_used_bytes: 90_000, compressed_bytes: 20_480, huge_pages: 2 };
        let r = ratio(&[one]);
        assert!((r.ratio - 2.0 / 1.03).abs() < 1e-9 && r.incompressible_share == 0.2, "{r:?}");
        assert!((r.ratio_low - r.ratio * 0.9).abs() < 1e-9);
        assert_eq!(from_checkpoints(&[], 1.0, 4096), None);
        assert_eq!(from_checkpoints(&[Checkpoint::default()], 1.0, 4096), None);
    }

    /// Memory differs by `chance` pages from the usual.
    fn by_chance(data: u64, batches: usize, chance: u64) -> Ratio {
        let mut all = readings(&vec![data; batches]);
        if let Some(last) = all.last_mut() {
            last.mem_used_bytes += chance * 4096;
        }
        ratio(&all)
    }

    #[test]
    fn memory_by_chance_does_not_change_the_order_of_a_few_pages() {
        // 500 pages of a tenth less data, with 20 pages more in groups that happen to be partly filled
        let few = |data: u64, chance: u64| {
            let mut all = readings(&[data, data]);
            for (reading, base) in all.iter_mut().zip([0, 1, 2]) {
                reading.pages = 250 + base * 250;
                reading.compressed_bytes = data * reading.pages as u64;
                reading.mem_used_bytes = reading.compressed_bytes + base as u64 * chance * 2048;
            }
            ratio(&all)
        };
        let (less, more) = (few(900, 20), few(1000, 0));
        assert!(less.ratio > more.ratio * 1.05, "{less:?} {more:?}");
        assert!(less.ratio_high > less.ratio * 1.03, "the interval has the chance in it: {less:?}");
    }

    #[test]
    fn of_many_pages_the_memory_counts() {
        // an eighth more than the data, of 40 MB
        let usual = by_chance(1000, 40, 0).ratio;
        let more = by_chance(1000, 40, 40_000_000 / 8 / 4096).ratio;
        assert!(more < usual * 0.9, "{more} {usual}");
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
