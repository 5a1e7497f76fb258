//! Decisions, all pure: which evicted blocks are worth a write, whether a read is worth it, how much to use by default.

use eke_cache_store::Heat;
use eke_model::units::Bytes;

use crate::SEGMENT;
use crate::saved::SavedFile;

/// Whether an evicted block is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worth {
    /// It is.
    Write,
    /// It was not requested again since it was admitted. Most such blocks never are, and each write wears the disk.
    Unrequested,
    /// It is there already, and will be for a while.
    Present,
}

/// What is known of an evicted block's earlier copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Earlier {
    /// There is none.
    None,
    /// There is one.
    Kept,
    /// There is one that will be overwritten soon.
    GoesSoon,
}

/// Decides for a block that was this hot when it was evicted. A block of the main queue was requested again, or somebody asked for it
/// to stay.
pub fn worth(heat: Heat, earlier: Earlier) -> Worth {
    match (earlier, heat) {
        (Earlier::Kept, _) => Worth::Present,
        (Earlier::None, Heat::New) => Worth::Unrequested,
        // It was worth a write before. If it was not requested since, it need not stay.
        (Earlier::GoesSoon, Heat::New) => Worth::Present,
        _ => Worth::Write,
    }
}

/// Of the oldest segments, one in so many goes soon.
const SOON_ONE_IN: usize = 4;

/// True if the segment with `younger` segments after it will be overwritten soon, in a ring of `segments` that is full.
pub fn goes_soon(younger: usize, segments: usize, is_full: bool) -> bool {
    is_full && segments - younger.min(segments) <= segments / SOON_ONE_IN
}

/// One read in so many is tried though the disk below was faster lately, because that changes.
const TRY_ONE_IN: u64 = 32;

/// Whether to read a block from the spill, by the running costs of a block there and below in µs (0: not known yet). `nth` counts the
/// reads that could be.
pub fn reads_spill(spill_us: f64, backing_us: f64, nth: u64) -> bool {
    spill_us <= backing_us || spill_us == 0.0 || backing_us == 0.0 || nth % TRY_ONE_IN == 0
}

/// The share of the free space that is used by default (one in so many): other files there need more than this cache.
const FREE_ONE_IN: u64 = 4;

/// The share of a disk that may be written in a day by default (one in so many). Consumer SSDs are specified for about 0.3 of their
/// capacity a day over five years; others use the disk too.
const DAY_ONE_IN: u64 = 10;

/// The share of the disk (one in so many) that stays free in any case.
const RESERVE_ONE_IN: u64 = 20;

/// The bytes to use: `requested`, or a share of what is free, where `own` bytes are the spill's already. At least two segments.
pub fn size(requested: Option<Bytes>, free: Bytes, own: Bytes) -> Bytes {
    let share = Bytes((free.0.saturating_add(own.0)) / FREE_ONE_IN);
    Bytes(requested.unwrap_or(share).0.max(2 * SEGMENT as u64))
}

/// The bytes to write in a day: `requested`, or a share of the whole disk.
pub fn day(requested: Option<Bytes>, disk: Bytes) -> Bytes {
    requested.unwrap_or(Bytes(disk.0 / DAY_ONE_IN))
}

/// True if the file may take another segment on a disk of this size with so much free.
pub fn may_grow(free: Bytes, disk: Bytes) -> bool {
    free.0.saturating_sub(SEGMENT as u64) > disk.0 / RESERVE_ONE_IN
}

/// Blocks that the index may have with this limit of the store's memory: a 32nd of it.
pub fn most_blocks(store: Bytes) -> usize {
    usize::try_from(store.0 / 32 / crate::index::ENTRY as u64).unwrap_or(usize::MAX).clamp(1024, 1 << 26)
}

/// Longer than the kernel keeps a change in memory only, also if it has a lot to write.
const WRITTEN_BACK_NS: i128 = 600_000_000_000;

/// True if the blocks of a file may be used again. After a reboot, which may have been a power cut, the disk can lack a change that the
/// file had shortly before the blocks were saved.
pub fn outlives(file: &SavedFile, saved_s: u64, same_boot: bool) -> bool {
    same_boot || i128::from(file.times_ns[1]) + WRITTEN_BACK_NS < i128::from(saved_s) * 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_requested_again_is_written_and_only_once() {
        let all = [Heat::New, Heat::Requested, Heat::Main, Heat::MainRequested];
        let of = |earlier| all.map(|heat| worth(heat, earlier));
        assert_eq!(of(Earlier::None), [Worth::Unrequested, Worth::Write, Worth::Write, Worth::Write]);
        assert_eq!(of(Earlier::Kept), [Worth::Present; 4]);
        assert_eq!(of(Earlier::GoesSoon), [Worth::Present, Worth::Write, Worth::Write, Worth::Write]);
    }

    #[test]
    fn the_oldest_quarter_of_a_full_ring_goes_soon() {
        let soon: Vec<bool> = (0..8).map(|younger| goes_soon(younger, 8, true)).collect();
        assert_eq!(soon, [false, false, false, false, false, false, true, true]);
        assert!(!goes_soon(7, 8, false) && !goes_soon(9, 2, false));
    }

    #[test]
    fn a_slow_spill_is_tried_now_and_then() {
        assert!(reads_spill(0.0, 100.0, 1) && reads_spill(100.0, 0.0, 1) && reads_spill(80.0, 5000.0, 1));
        assert_eq!((1..=320).filter(|&nth| reads_spill(5000.0, 80.0, nth)).count(), 10);
    }

    #[test]
    fn defaults_leave_most_of_the_disk_to_others() {
        let gib = |n: u64| Bytes(n << 30);
        assert_eq!(size(None, gib(39), gib(1)), gib(10));
        assert_eq!(size(Some(gib(3)), gib(1), gib(0)), gib(3));
        assert_eq!(size(None, gib(0), gib(0)), Bytes(2 * SEGMENT as u64));
        assert_eq!((day(None, gib(100)), day(Some(gib(2)), gib(100))), (gib(10), gib(2)));
        assert!(may_grow(gib(6), gib(100)) && !may_grow(gib(5), gib(100)) && !may_grow(Bytes(0), Bytes(0)));
        assert_eq!((most_blocks(Bytes(0)), most_blocks(Bytes(u64::MAX))), (1024, 1 << 26));
    }

    #[test]
    fn after_a_reboot_recent_changes_are_not_believed() {
        let changed = |s: i64| SavedFile { file: 1, size: 1, times_ns: [0, s * 1_000_000_000, 0] };
        assert!(outlives(&changed(5000), 5000, true));
        assert!(!outlives(&changed(5000), 5000, false) && !outlives(&changed(4400), 5000, false));
        assert!(outlives(&changed(4399), 5000, false) && !outlives(&changed(9000), 5000, false));
    }
}
