//! How fast reads should be answered.

use eke_linux::Root;
use eke_model::units::Nanos;

use crate::sense::devices::directory;

/// Where nobody says otherwise, of a disk that seeks: some seeks' time. The writeback throttle's own default there is 75 ms, of the fastest
/// read of a window (block/blk-wbt.c).
pub const ROTATING: Nanos = Nanos(50_000_000);
/// Of all others.
pub const SOLID: Nanos = Nanos(10_000_000);

/// The target of a disk; `wanted_ms` is the user's, 0 for by the kind of disk.
pub fn of(root: &Root, device: &str, wanted_ms: u32) -> Nanos {
    if wanted_ms > 0 {
        return Nanos(u64::from(wanted_ms) * 1_000_000);
    }
    let rotational = root.read(format!("sys/block/{}/queue/rotational", directory(device)));
    if rotational.is_ok_and(|text| text.trim() == "1") { ROTATING } else { SOLID }
}
