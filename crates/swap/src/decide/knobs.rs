//! Knobs from measured costs.

use eke_linux::parse::release::version;
use eke_model::units::Nanos;

/// The formula of the kernel's document (Documentation/admin-guide/sysctl/vm.rst, since Linux 5.8): if a page from swap costs 1/k of a page from a
/// file, x + kx = 200 and swappiness = 200k/(1+k). 100 means equal. The extremes are excluded: mm/vmscan.c reclaims no file page at 200, and with
/// the multi-generational LRU no anonymous page at 1. `kernel` is the release (`uname -r`): before 5.8 the kernel refuses more than 100.
pub fn swappiness(swap_in: Nanos, file_read: Nanos, kernel: &str) -> u32 {
    let k = file_read.0.max(1) as f64 / swap_in.0.max(1) as f64;
    let most = if is_before(kernel, (5, 8)) { 100.0 } else { 199.0 };
    (200.0 * k / (1.0 + k)).round().clamp(2.0, most) as u32
}

/// Is this release before `(major, minor)`? An unreadable one counts as new.
pub(crate) fn is_before(kernel: &str, other: (u32, u32)) -> bool {
    version(kernel).is_some_and(|version| version < other)
}

/// Does a full pool of zsmalloc write its oldest pages out? Since Linux 6.2 (commit 9997bc017549); before, it refuses new ones. It is the choice there all
/// the same: on Linux 6.1 it held nine documents, the kernel's defaults (zbud, 20 %) two (docs/results/capacity-machine.json).
pub(crate) fn zsmalloc_evicts(kernel: &str) -> bool {
    !is_before(kernel, (6, 2))
}

/// zswap's pool in percent of RAM: the kernel's default of 20 for a disk of 100 µs, `most_percent` for one of 10 ms (a seek), in between by the
/// logarithm. It has ten steps, so that two measurements of one disk give the same plan.
pub fn zswap_pool_percent(disk_p50: Nanos, most_percent: u32) -> u32 {
    const FAST_NS: f64 = 100e3;
    const SLOW_NS: f64 = 10e6;
    let least = 20.0_f64.min(f64::from(most_percent));
    let slow = ((disk_p50.0.max(1) as f64).ln() - FAST_NS.ln()) / (SLOW_NS.ln() - FAST_NS.ln());
    let slow = (slow.clamp(0.0, 1.0) * 10.0).round() / 10.0;
    (least + (f64::from(most_percent) - least) * slow).round() as u32
}

/// zswap's accept threshold in percent of the pool. For any pool size the gap between "full" and "accepts pages again" stays at 2 % of RAM, as with
/// the kernel's defaults (20 % and 90 %).
pub fn zswap_accept_percent(pool_percent: u32) -> u32 {
    let gap = 200.0 / f64::from(pool_percent.max(1));
    (100.0 - gap).round().clamp(50.0, 99.0) as u32
}

/// The cost of a page from swap with zswap in front of a disk, with nine of ten pages from the pool. That share is an assumption: it depends on the
/// programs. The reason states it beside the number.
pub fn zswap_swap_in(load: Nanos, disk: Nanos) -> Nanos {
    Nanos((load.0.saturating_mul(9)).saturating_add(disk.0) / 10)
}

/// The cost of a page from swap with this share of the pages in zram, and the others on a disk behind it.
pub fn overflowing_swap_in(load: Nanos, disk: Nanos, in_zram: f64) -> Nanos {
    Nanos((load.0 as f64 * in_zram + disk.0 as f64 * (1.0 - in_zram)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swappiness_follows_the_kernels_document() {
        let k = |k: u64| swappiness(Nanos(1000), Nanos(1000 * k), "6.12.0");
        assert_eq!([k(1), k(2), k(5), k(10), k(20)], [100, 133, 167, 182, 190]);
    }

    #[test]
    fn both_kinds_of_pages_are_always_reclaimed() {
        assert_eq!(swappiness(Nanos(1000), Nanos(0), ""), 2);
        assert_eq!(swappiness(Nanos::micros(2), Nanos::micros(12_000), ""), 199);
    }

    #[test]
    fn a_page_costs_as_the_pages_are_spread() {
        let at = |share| overflowing_swap_in(Nanos(10), Nanos(1000), share).0;
        assert_eq!([at(0.0), at(0.1), at(0.5)], [1000, 901, 505]);
    }

    #[test]
    fn an_old_kernel_accepts_no_more_than_100() {
        let on = |kernel| swappiness(Nanos(1000), Nanos(10_000), kernel);
        assert_eq!(
            ["4.19.0-27-amd64", "5.7.19", "5.8.0", "5.10-rc1", "6.1.21-v8+", "?"].map(on),
            [100, 100, 182, 182, 182, 182]
        );
    }

    #[test]
    fn the_slower_the_disk_the_larger_the_pool() {
        let at = |us| zswap_pool_percent(Nanos::micros(us), 50);
        assert_eq!([at(20), at(100), at(1_000), at(10_000), at(90_000)], [20, 20, 35, 50, 50]);
        assert_eq!([at(900), at(1_100)], [35, 35], "noise gives the same plan");
        assert_eq!(zswap_pool_percent(Nanos::micros(10_000), 53), 53);
        assert_eq!(zswap_pool_percent(Nanos::micros(10_000), 90), 90);
        assert_eq!(zswap_pool_percent(Nanos::micros(50), 10), 10);
    }

    #[test]
    fn the_gap_stays_two_percent_of_ram() {
        assert_eq!([20, 50, 90].map(zswap_accept_percent), [90, 96, 98]);
    }
}
