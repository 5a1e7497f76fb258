//! Rates and shares: a pure function of two samples and the time between them.

use serde::{Deserialize, Serialize};

use crate::sample::{Sample, SwapArea};
use crate::units::Bytes;

/// Rates and shares, computed from two samples.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Model {
    /// RAM.
    pub ram: Bytes,
    /// Memory that new programs can get without swapping.
    pub available: Bytes,
    /// Uncompressed size of what is compressed in RAM, same-filled pages included.
    pub held: Bytes,
    /// RAM that the compressed pages take: zram's allocator and zswap's pool.
    pub pool: Bytes,
    /// `held` - `pool`.
    pub saved: Bytes,
    /// `held` / `pool`; `None` while less than 1 MiB is held.
    pub effective_ratio: Option<f64>,
    /// Share of the compressed pages that did not compress, 0..=1; `None` where the kernel does not count them.
    pub incompressible_share: Option<f64>,
    /// Pages swapped in per second (zswap's own loads included).
    pub pages_in_per_s: f64,
    /// Pages swapped out per second (zswap's own stores included).
    pub pages_out_per_s: f64,
    /// Major faults per second.
    pub major_faults_per_s: f64,
    /// Share of the interval in which at least one task waited for memory, 0..=1.
    pub waiting_share: Option<f64>,
    /// kswapd's CPU time as a share of one CPU.
    pub kswapd_cpu_share: f64,
    /// Idle share of all CPUs, 0..=1.
    pub idle_cpu_share: f64,
    /// Processes that the out-of-memory killer ended since boot.
    pub oom_kills: u64,
    /// Length of the interval in seconds; 0 for the first sample.
    pub interval_s: f64,
}

impl Model {
    /// The model at `now`. Without a previous sample all rates are 0. A counter that went backwards gives 0: its device
    /// was reset in between.
    pub fn new(now: &Sample, before: Option<&Sample>) -> Self {
        let before = before.unwrap_or(now);
        let interval_s = now.time_ms.saturating_sub(before.time_ms) as f64 / 1e3;
        let rate = |a: u64, b: u64| per_second(a, b, interval_s);
        let (held, pool) = (held(now), pool(now));
        let ticks = now.cpu.total.saturating_sub(before.cpu.total);
        Self {
            ram: now.memory.total,
            available: now.memory.available,
            held,
            pool,
            saved: held.saturating_sub(pool),
            effective_ratio: (pool.0 > 0 && held >= LEAST_FOR_A_RATIO).then(|| held.0 as f64 / pool.0 as f64),
            incompressible_share: incompressible_share(now),
            pages_in_per_s: rate(pages_in(now), pages_in(before)),
            pages_out_per_s: rate(pages_out(now), pages_out(before)),
            major_faults_per_s: rate(now.vm.pgmajfault, before.vm.pgmajfault),
            waiting_share: waiting_share(now, before, interval_s),
            kswapd_cpu_share: rate(now.cpu.kswapd, before.cpu.kswapd) / 100.0,
            idle_cpu_share: share(now.cpu.idle.saturating_sub(before.cpu.idle), ticks).unwrap_or(1.0),
            oom_kills: now.vm.oom_kill,
            interval_s,
        }
    }
}

fn pages_in(sample: &Sample) -> u64 {
    sample.vm.pswpin.saturating_add(sample.vm.zswpin)
}

fn pages_out(sample: &Sample) -> u64 {
    sample.vm.pswpout.saturating_add(sample.vm.zswpout)
}

fn per_second(now: u64, before: u64, interval_s: f64) -> f64 {
    if interval_s > 0.0 { now.saturating_sub(before) as f64 / interval_s } else { 0.0 }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn zram_swaps(sample: &Sample) -> impl Iterator<Item = &crate::sample::ZramStat> {
    let names: Vec<&str> = sample.swaps.iter().filter_map(SwapArea::zram_name).collect();
    sample.zram.iter().filter(move |z| names.contains(&z.name.as_str()))
}

/// Below 1 MiB, the swap header and the allocator's first pages dominate the ratio.
const LEAST_FOR_A_RATIO: Bytes = Bytes(1 << 20);

fn held(sample: &Sample) -> Bytes {
    let zram: Bytes =
        zram_swaps(sample).map(|z| z.orig_data.saturating_sub(z.written_back.unwrap_or_default())).sum();
    zram + sample.memory.zswap_stored.unwrap_or_default()
}

fn pool(sample: &Sample) -> Bytes {
    let zram: Bytes = zram_swaps(sample).map(|z| z.mem_used).sum();
    zram + sample.memory.zswap_pool.unwrap_or_default()
}

fn incompressible_share(sample: &Sample) -> Option<f64> {
    let page_bytes = if sample.page_bytes == 0 { 4096 } else { sample.page_bytes };
    let (huge, all) = zram_swaps(sample).fold((0u64, 0u64), |(huge, all), z| {
        (huge.saturating_add(z.huge_pages), all.saturating_add(z.orig_data.0 / page_bytes))
    });
    share(huge, all)
}

fn waiting_share(now: &Sample, before: &Sample, interval_s: f64) -> Option<f64> {
    let (now, before) = (now.pressure?, before.pressure?);
    Some(per_second(now.some_total_us, before.some_total_us, interval_s) / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::ZramStat;

    fn with_zram(orig_mib: u64, used_mib: u64, written_back_mib: u64) -> Sample {
        Sample {
            swaps: vec![SwapArea { device: Some("zram1".into()), ..SwapArea::default() }],
            zram: vec![
                ZramStat {
                    name: "zram1".into(),
                    orig_data: Bytes::mib(orig_mib),
                    mem_used: Bytes::mib(used_mib),
                    written_back: Some(Bytes::mib(written_back_mib)),
                    huge_pages: 16,
                    ..ZramStat::default()
                },
                ZramStat { name: "zram0".into(), orig_data: Bytes::mib(999), ..ZramStat::default() },
            ],
            ..Sample::default()
        }
    }

    #[test]
    fn saved_counts_only_devices_that_are_swap() {
        let m = Model::new(&with_zram(32, 10, 1), None);
        assert_eq!((m.held, m.pool, m.saved), (Bytes::mib(31), Bytes::mib(10), Bytes::mib(21)));
        assert_eq!(m.effective_ratio, Some(3.1));
        assert_eq!(m.incompressible_share, Some(16.0 / 8192.0));
        let large_pages = Sample { page_bytes: 16_384, ..with_zram(32, 10, 1) };
        assert_eq!(Model::new(&large_pages, None).incompressible_share, Some(16.0 / 2048.0));
    }

    #[test]
    fn rates_are_per_second_and_never_negative() {
        let mut a = Sample { time_ms: 1_000, ..Sample::default() };
        a.vm.pswpin = 100;
        a.vm.pswpout = 500;
        let mut b = Sample { time_ms: 3_000, ..Sample::default() };
        b.vm.pswpin = 300;
        b.vm.pswpout = 10;
        let m = Model::new(&b, Some(&a));
        assert_eq!((m.pages_in_per_s, m.pages_out_per_s, m.interval_s), (100.0, 0.0, 2.0));
    }

    #[test]
    fn nothing_held_has_no_ratio() {
        assert_eq!(Model::new(&Sample::default(), None).effective_ratio, None);
    }
}
