//! How short of memory the machine is, from the samples of the last seconds. Pure.

use std::collections::VecDeque;

use eke_model::sample::{Sample, SwapArea};
use eke_model::units::Bytes;

/// Samples older than this are dropped.
const KEPT_MS: u64 = 10_500;
/// Growth and the present share of stalls are those of this time.
const PRESENT_MS: u64 = 1_000;
/// Compressed bytes that were stored within [`KEPT_MS`] show a ratio from this amount on.
const LEAST_FOR_A_RATIO: u64 = 4 << 20;
/// The ratio as long as nothing is compressed: the lower end of what eke's own measurements find.
const USUAL_RATIO: f64 = 2.0;

/// A machine with more RAM needs no more room than one with this much: 2 % of 1 TiB are 20 GiB, with which it runs well.
pub const MOST_RAM: Bytes = Bytes(64 << 30);

/// A program takes no more than this share of RAM in a second: 200 MB on a small machine, where pages are compressed meanwhile.
const FASTEST_SHARE: f64 = 0.2;
/// Growth shows from the second poll on, and the third acts.
const POLLS_WITHIN_ROOM: f64 = 3.0;

/// The machine's shortage of memory. Shares of RAM are of [`MOST_RAM`] at most.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Shortage {
    /// Share of the last second in which every task that could run waited for memory, 0..=1 (PSI `full`). 0 on a kernel
    /// without PSI.
    pub stalled_1s: f64,
    /// The same of the last 5 s.
    pub stalled_5s: f64,
    /// What was read back from swap in the last 5 s, as a share of RAM a second: programs lose what they use.
    pub read_back_share: f64,
    /// What the kernel scanned in the last 5 s to take memory from the whole machine, as a share of RAM a second: nothing while only a
    /// group at its own limit waits.
    pub scanned_share: f64,
    /// The same in bytes a second.
    pub scanned: Bytes,
    /// What programs can still get, compressed swap at its present ratio included.
    pub room: Bytes,
    /// The same as a share of RAM.
    pub room_share: f64,
    /// The kernel's estimate of what is available, as a share of RAM.
    pub available_share: f64,
    /// What ZFS's cache says that it can give back, as a share of RAM.
    pub zfs_share: f64,
    /// What programs have in RAM and what is free, as a share of RAM, both without what is locked: what the kernel and the compressed
    /// pool have left to them.
    pub resident_share: f64,
    /// Seconds until the room is used up at the growth of the last second; `None` without growth.
    pub left_s: Option<f64>,
    /// Time between the last two samples: on a machine that stalls the guard itself comes late.
    pub gap_s: f64,
}

impl Shortage {
    /// Milliseconds to the next poll, where no pressure wakes the guard: several polls fit into the time that the room lasts for
    /// the fastest program, or for the present growth.
    pub fn poll_again_ms(&self) -> u64 {
        let left_s = self.left_s.unwrap_or(f64::INFINITY).min(self.room_share / FASTEST_SHARE);
        (left_s * 1e3 / POLLS_WITHIN_ROOM) as u64
    }

    /// The same without the stalls, which are not the machine's.
    pub fn without_stalls(self) -> Self {
        Self { stalled_1s: 0.0, stalled_5s: 0.0, ..self }
    }
}

/// The samples of the last seconds, oldest first.
#[derive(Debug, Default)]
pub struct Recent(VecDeque<Sample>);

impl Recent {
    /// Adds a sample. A clock that went backwards starts anew.
    pub fn push(&mut self, sample: Sample) {
        let now_ms = sample.time_ms;
        if self.0.back().is_some_and(|last| last.time_ms >= now_ms) {
            self.0.clear();
        }
        self.0.push_back(sample);
        while self.0.front().is_some_and(|first| now_ms - first.time_ms > KEPT_MS) {
            self.0.pop_front();
        }
    }

    /// The shortage at the newest sample.
    pub fn shortage(&self) -> Shortage {
        let Some(now) = self.0.back() else {
            return Shortage {
                room_share: 1.0,
                available_share: 1.0,
                resident_share: 1.0,
                ..Shortage::default()
            };
        };
        let ram = ram(now).0 as f64;
        let room = room(now, self.ratio(now));
        let scanned_per_s = self.per_s(now, |s| s.vm.pgscan_global);
        Shortage {
            stalled_1s: self.stalled(now, PRESENT_MS),
            stalled_5s: self.stalled(now, 5_000),
            read_back_share: self.per_s(now, |s| s.vm.pswpin.saturating_add(s.vm.zswpin)) / ram,
            scanned_share: scanned_per_s / ram,
            scanned: Bytes(scanned_per_s as u64),
            room: Bytes(room as u64),
            room_share: room / ram,
            available_share: now.memory.available.0 as f64 / ram,
            zfs_share: now.zfs_cache.0 as f64 / ram,
            resident_share: resident(now) / unlocked(now).0 as f64,
            gap_s: self.gap_s(now),
            left_s: self.growth_per_s(now).filter(|growth| *growth > 0.0).map(|growth| room / growth),
        }
    }

    /// The newest sample that is at least `ms` old, else the oldest.
    fn before(&self, now: &Sample, ms: u64) -> Option<&Sample> {
        let old = |s: &&Sample| now.time_ms - s.time_ms >= ms;
        self.0.iter().rev().find(old).or(self.0.front()).filter(|s| s.time_ms < now.time_ms)
    }

    fn gap_s(&self, now: &Sample) -> f64 {
        let last = self.0.iter().rev().nth(1);
        last.map_or(0.0, |last| (now.time_ms - last.time_ms) as f64 / 1e3)
    }

    /// Stalls within the last `ms`, as a share of all of it: a sample may be younger.
    fn stalled(&self, now: &Sample, ms: u64) -> f64 {
        let stalled_us = |s: &Sample| Some(s.pressure?.full_total_us);
        let us =
            self.before(now, ms).and_then(|then| Some((stalled_us(now)?, stalled_us(then)?, then.time_ms)));
        us.map_or(0.0, |(now_us, then_us, then_ms)| {
            now_us.saturating_sub(then_us) as f64 / 1e3 / (now.time_ms - then_ms).max(ms) as f64
        })
    }

    /// A counter of pages as bytes a second, within the last 5 s.
    fn per_s(&self, now: &Sample, pages: impl Fn(&Sample) -> u64) -> f64 {
        let Some(then) = self.before(now, 5_000) else { return 0.0 };
        let bytes = pages(now).saturating_sub(pages(then)).saturating_mul(now.page_bytes.max(4096));
        bytes as f64 * 1e3 / (now.time_ms - then.time_ms).max(5_000) as f64
    }

    /// Bytes a second by which programs' memory grows, in RAM and in swap.
    fn growth_per_s(&self, now: &Sample) -> Option<f64> {
        let then = self.before(now, PRESENT_MS)?;
        let grown = demand(now).0 as f64 - demand(then).0 as f64;
        Some(grown * 1e3 / (now.time_ms - then.time_ms) as f64)
    }

    /// The compression ratio of what was stored lately; else of all that is stored.
    fn ratio(&self, now: &Sample) -> f64 {
        let (stored, pool) = compressed(now);
        let lately = self.0.front().map(compressed).and_then(|(then, pool_then)| {
            let (more, cost) = (stored.saturating_sub(then), pool.saturating_sub(pool_then));
            (more >= LEAST_FOR_A_RATIO).then(|| more as f64 / cost.max(1) as f64)
        });
        let all = (stored >= LEAST_FOR_A_RATIO).then(|| stored as f64 / pool.max(1) as f64);
        lately.or(all).unwrap_or(USUAL_RATIO).clamp(1.0, 8.0)
    }
}

/// RAM, as far as it counts.
pub fn ram(sample: &Sample) -> Bytes {
    sample.memory.total.clamp(Bytes(1), MOST_RAM)
}

/// RAM without locked memory, as far as it counts: with nearly all locked for virtual machines, a host runs well in the rest.
fn unlocked(sample: &Sample) -> Bytes {
    sample.memory.total.saturating_sub(sample.memory.unevictable).clamp(Bytes(1), MOST_RAM)
}

/// The sample without the room of an area that is being swapped off: it takes no more pages. The kernel counts those that it still has as free
/// (`si_swapinfo`, mm/swapfile.c).
pub fn without_leaving(mut sample: Sample, device: &str) -> Sample {
    for area in sample.swaps.iter_mut().filter(|area| area.zram_name() == Some(device)) {
        let free = area.size.saturating_sub(area.used);
        sample.memory.swap_free = sample.memory.swap_free.saturating_sub(area.used);
        area.size = area.size.saturating_sub(free);
    }
    sample
}

/// What programs have: anonymous and shared memory, in RAM and in swap.
pub fn demand(sample: &Sample) -> Bytes {
    in_use(sample).all()
}

/// What all programs have, each page once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InUse {
    /// Anonymous memory in RAM, and all that is in swap.
    pub private: Bytes,
    /// What is in swap alone.
    pub swapped: Bytes,
    /// Shared memory and files of tmpfs in RAM: the kernel counts them in no process.
    pub shared: Bytes,
}

impl InUse {
    /// All of it.
    pub fn all(self) -> Bytes {
        self.private + self.shared
    }

    /// Where shared memory may be.
    pub fn shared_or_swapped(self) -> Bytes {
        self.shared + self.swapped
    }
}

/// What all programs have now.
pub fn in_use(sample: &Sample) -> InUse {
    InUse { private: private(sample), swapped: swapped(sample), shared: sample.memory.shared }
}

/// The anonymous memory of all programs in RAM, and all that is in swap, also of shared memory. Each page counts once: what was read
/// back and keeps its place in swap is there in both. For a moment, pages on their way out count in neither.
fn private(sample: &Sample) -> Bytes {
    (sample.memory.anonymous + swap_used(sample)).saturating_sub(sample.memory.swap_cached)
}

fn swapped(sample: &Sample) -> Bytes {
    swap_used(sample).saturating_sub(sample.memory.swap_cached)
}

fn swap_used(sample: &Sample) -> Bytes {
    sample.memory.swap_total.saturating_sub(sample.memory.swap_free)
}

/// Stored and pool bytes of zram and zswap.
fn compressed(sample: &Sample) -> (u64, u64) {
    let zram = sample.zram.iter().fold((0, 0), |(stored, pool), z| {
        let in_ram = z.orig_data.saturating_sub(z.written_back.unwrap_or_default()).0;
        (stored + in_ram, pool + z.mem_used.0)
    });
    let zswap = |b: Option<Bytes>| b.unwrap_or_default().0;
    (zram.0 + zswap(sample.memory.zswap_stored), zram.1 + zswap(sample.memory.zswap_pool))
}

/// Free memory, and all pages of programs and files in RAM that are not locked. ZFS's cache is one of files, too.
fn resident(sample: &Sample) -> f64 {
    let memory = &sample.memory;
    let pages = (memory.anonymous + memory.file_cache + memory.shared).saturating_sub(memory.unevictable);
    (memory.free + pages + sample.zfs_cache).0 as f64
}

/// Bytes that programs can still get. With all free compressed swap `z` in use at ratio `r`, `z/r` of RAM holds `z`, so RAM
/// for `z (1 - 1/r)` more is gained; at most everything that is not locked can be compressed: `r` times what is available,
/// and `r - 1` times what is in RAM now.
fn room(sample: &Sample, ratio: f64) -> f64 {
    let memory = &sample.memory;
    let swappable = (memory.anonymous + memory.shared).saturating_sub(memory.unevictable).0 as f64;
    // The kernel's estimate counts reclaimable kernel memory, which does not come back fast enough here.
    let available = memory.available.min(memory.free + memory.file_cache) + sample.zfs_cache;
    let available = available.0 as f64;
    let free = |zram: bool| -> f64 {
        let areas = sample.swaps.iter().filter(|a| a.zram_name().is_some() == zram);
        areas.map(|a: &SwapArea| a.size.saturating_sub(a.used).0 as f64).sum()
    };
    let by_size = available + free(true) * (1.0 - 1.0 / ratio);
    let by_ratio = ratio * available + (ratio - 1.0) * swappable;
    by_size.min(by_ratio) + free(false)
}

#[cfg(test)]
mod tests {
    use eke_model::sample::{Memory, Pressure, ZramStat};

    use super::*;

    /// 100 MiB of RAM; anonymous and available memory in MiB, zram of 100 MiB with `stored` MiB at 2 to 1.
    fn at(time_ms: u64, anonymous: u64, available: u64, stored: u64, stalled_ms: u64) -> Sample {
        let swap_free = Bytes::mib(100 - stored);
        Sample {
            time_ms,
            memory: Memory {
                total: Bytes::mib(100),
                anonymous: Bytes::mib(anonymous),
                available: Bytes::mib(available),
                free: Bytes::mib(available),
                swap_total: Bytes::mib(100),
                swap_free,
                ..Memory::default()
            },
            swaps: vec![SwapArea {
                device: Some("zram0".into()),
                size: Bytes::mib(100),
                used: Bytes::mib(stored),
                ..SwapArea::default()
            }],
            zram: vec![ZramStat {
                name: "zram0".into(),
                orig_data: Bytes::mib(stored),
                mem_used: Bytes::mib(stored / 2),
                ..ZramStat::default()
            }],
            pressure: Some(Pressure { full_total_us: stalled_ms * 1_000, ..Pressure::default() }),
            ..Sample::default()
        }
    }

    fn shortage(samples: impl IntoIterator<Item = Sample>) -> Shortage {
        let mut recent = Recent::default();
        samples.into_iter().for_each(|s| recent.push(s));
        recent.shortage()
    }

    #[test]
    fn room_is_what_ram_and_compressed_swap_still_give() {
        // 40 MiB available, 80 free in zram at 2 to 1: 40 + 40
        assert!((shortage([at(0, 40, 40, 20, 0)]).room_share - 0.8).abs() < 0.01);
        // a zram device far larger than RAM: 2 x 1 + 1 x 20
        assert!((shortage([at(0, 20, 1, 50, 0)]).room_share - 0.22).abs() < 0.01);
        let mut disk = at(0, 20, 1, 50, 0);
        disk.swaps[0].device = None;
        assert!((shortage([disk]).room_share - 0.51 - 0.01).abs() < 0.02, "a disk costs no RAM");
    }

    #[test]
    fn an_area_that_is_being_swapped_off_is_no_room_and_its_pages_are_still_in_use() {
        let mut sample = at(0, 40, 40, 20, 0);
        // What the kernel shows of an area with 20 MiB, which is the only one.
        (sample.memory.swap_total, sample.memory.swap_free) = (Bytes::mib(20), Bytes::mib(20));
        let leaving = without_leaving(sample.clone(), "zram0");
        assert!((shortage([leaving.clone()]).room_share - 0.4).abs() < 0.01, "what is available");
        assert_eq!(private(&leaving), Bytes::mib(60));
        assert_eq!(without_leaving(sample.clone(), "zram1"), sample);
    }

    #[test]
    fn locked_memory_is_not_compressed() {
        // 20 MiB of anonymous memory and 1 available: 2 x 1 + 1 x 20, and without 15 that are locked 2 x 1 + 1 x 5
        let locked = |mib| {
            let mut sample = at(0, 20, 1, 50, 0);
            sample.memory.unevictable = Bytes::mib(mib);
            shortage([sample])
        };
        assert!((locked(15).room_share - 0.07).abs() < 0.01, "{:?}", locked(15));
        assert!((locked(15).resident_share - 6.0 / 85.0).abs() < 0.01);
        assert!((locked(90).room_share - 0.02).abs() < 0.01, "files are locked, too");
    }

    #[test]
    fn zfs_gives_its_cache_back() {
        let mut sample = at(0, 60, 2, 100, 0);
        let before = shortage([sample.clone()]);
        sample.zfs_cache = Bytes::mib(30);
        let with = shortage([sample]);
        for gained in [
            with.room_share - before.room_share,
            with.zfs_share - before.zfs_share,
            with.resident_share - before.resident_share,
        ] {
            assert!((gained - 0.3).abs() < 0.01, "{before:?} {with:?}");
        }
    }

    #[test]
    fn the_less_room_the_sooner_the_next_poll() {
        let again_ms = |available| shortage([at(0, 100 - available, available, 100, 0)]).poll_again_ms();
        assert_eq!([80, 20, 5].map(again_ms), [1_333, 333, 83]);
        let grows = [at(0, 40, 40, 20, 0), at(1_000, 80, 10, 20, 0)];
        assert_eq!(shortage(grows).poll_again_ms(), 416, "50 MiB for 40 a second");
    }

    #[test]
    fn growth_says_when_the_room_ends() {
        let s = shortage([at(0, 40, 40, 20, 0), at(1_000, 60, 20, 20, 0)]);
        // 20 MiB a second, room for 20 + 40
        assert!((s.left_s.unwrap() - 3.0).abs() < 0.1, "{s:?}");
        assert_eq!(shortage([at(0, 60, 20, 20, 0), at(1_000, 60, 20, 20, 0)]).left_s, None);
    }

    #[test]
    fn a_second_of_stalls_is_a_fifth_of_five() {
        let s = shortage((0..=40).map(|i| at(i * 250, 40, 40, 20, if i > 36 { (i - 36) * 250 } else { 0 })));
        assert!((s.stalled_1s - 1.0).abs() < 0.01 && (s.stalled_5s - 0.2).abs() < 0.01, "{s:?}");
        let s = shortage([at(0, 40, 40, 20, 0), at(250, 40, 40, 20, 250)]);
        assert!((s.stalled_1s - 0.25).abs() < 0.01, "a share of all the time, not of what was seen of it");
    }

    #[test]
    fn what_is_read_back_is_a_share_of_ram_a_second() {
        let mut later = at(5_000, 40, 40, 20, 0);
        // 50 MiB of 100 in 5 s
        later.vm.pswpin = (50 << 20) / 4096;
        assert!((shortage([at(0, 40, 40, 20, 0), later]).read_back_share - 0.1).abs() < 0.001);
        assert_eq!(shortage([at(0, 40, 40, 20, 0), at(5_000, 40, 40, 20, 0)]).read_back_share, 0.0);
    }

    #[test]
    fn what_the_kernel_scans_for_the_machine_is_a_share_of_ram_a_second() {
        let mut later = at(5_000, 40, 40, 20, 0);
        later.vm.pgscan_global = (10 << 20) / 4096;
        let found = shortage([at(0, 40, 40, 20, 0), later]);
        assert!((found.scanned_share - 0.02).abs() < 0.001 && found.scanned == Bytes::mib(2), "{found:?}");
    }

    #[test]
    fn a_page_that_was_read_back_and_is_in_swap_counts_once() {
        let mut sample = at(0, 40, 40, 20, 0);
        assert_eq!(private(&sample), Bytes::mib(60));
        sample.memory.swap_cached = Bytes::mib(15);
        assert_eq!((private(&sample), demand(&sample)), (Bytes::mib(45), Bytes::mib(45)));
        sample.memory.swap_cached = Bytes::mib(90);
        assert_eq!(private(&sample), Bytes(0));
    }

    #[test]
    fn data_that_does_not_compress_leaves_less_room() {
        let mut later = at(1_000, 40, 20, 40, 0);
        later.zram[0].mem_used = Bytes::mib(30);
        let s = shortage([at(0, 40, 40, 20, 0), later]);
        assert!(s.room_share < 0.21, "only what is available: {s:?}");
    }

    #[test]
    fn a_machine_with_much_ram_is_not_exhausted_with_gigabytes_to_spare() {
        let gib = |n: u64| Bytes(n << 30);
        let sample = Sample {
            memory: Memory {
                total: gib(1024),
                available: gib(15),
                free: gib(15),
                anonymous: gib(985),
                ..Memory::default()
            },
            ..Sample::default()
        };
        let mut recent = Recent::default();
        recent.push(sample);
        let s = recent.shortage();
        assert_eq!(s.room, gib(15));
        assert!(crate::level::level(&s) < crate::level::Level::Exhausted, "{s:?}");
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_negative_or_endless(a in 0u64..200, v in 0u64..200, s in 0u64..=100, ms in 1u64..20_000) {
            let s = shortage([at(0, a, v, 0, 0), at(ms, v, a, s, ms)]);
            proptest::prop_assert!(s.room_share >= 0.0 && s.room_share.is_finite());
            proptest::prop_assert!((0.0..=1.0).contains(&s.stalled_1s));
            proptest::prop_assert!(s.left_s.is_none_or(|left| left >= 0.0 && left.is_finite()));
        }
    }
}
