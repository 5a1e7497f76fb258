//! The latency that reads should have, and what they cost.

use eke_linux::Root;
use eke_model::units::Nanos;

use crate::sensor::devices::directory;

/// The default for a rotating disk: the time of some seeks. The writeback throttle's default there is 75 ms, for the fastest read of a window
/// (block/blk-wbt.c).
pub const ROTATING: Nanos = Nanos(50_000_000);
/// The default for all others.
pub const SOLID: Nanos = Nanos(10_000_000);

/// Two seeks with half a rotation of 7200 rpm (data sheets: 8.5 ms and 4.2 ms); short ones and the drive's own order take less.
const SEEK: Nanos = Nanos(16_000_000);

/// The target of a disk; `override_ms` is the user's, 0 for the default of its kind.
pub fn of(root: &Root, device: &str, override_ms: u32) -> Nanos {
    if override_ms > 0 {
        return Nanos(u64::from(override_ms) * 1_000_000);
    }
    if rotates(root, device) { ROTATING } else { SOLID }
}

/// The time that the arm of a disk takes to a read and back; 0 without an arm.
pub fn seek(root: &Root, device: &str) -> Nanos {
    if rotates(root, device) { SEEK } else { Nanos(0) }
}

fn rotates(root: &Root, device: &str) -> bool {
    let rotational = root.read(format!("sys/block/{}/queue/rotational", directory(device)));
    rotational.is_ok_and(|text| text.trim() == "1")
}
