//! The latency that reads should have.

use eke_linux::Root;
use eke_model::units::Nanos;

use crate::sensor::devices::directory;

/// The default for a rotating disk: the time of some seeks. The writeback throttle's default there is 75 ms, for the fastest read of a window
/// (block/blk-wbt.c).
pub const ROTATING: Nanos = Nanos(50_000_000);
/// The default for all others.
pub const SOLID: Nanos = Nanos(10_000_000);

/// The target of a disk; `override_ms` is the user's, 0 for the default of its kind.
pub fn of(root: &Root, device: &str, override_ms: u32) -> Nanos {
    if override_ms > 0 {
        return Nanos(u64::from(override_ms) * 1_000_000);
    }
    let rotational = root.read(format!("sys/block/{}/queue/rotational", directory(device)));
    if rotational.is_ok_and(|text| text.trim() == "1") { ROTATING } else { SOLID }
}
