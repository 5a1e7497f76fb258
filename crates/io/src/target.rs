//! The latency that reads should have, and what they cost.

use eke_linux::Root;
use eke_linux::virtual_disk::is_virtual;
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

/// The time that the arm of a disk takes to a read and back; 0 without an arm. Who sets a target knows the disk better than its flag: virtual disks,
/// RAID and bridges of USB say that they rotate, whatever they do. `override_ms` as in [`of`].
pub fn seek(root: &Root, device: &str, override_ms: u32) -> Nanos {
    let has_arm = override_ms == 0 && rotates(root, device) && !is_virtual(root, &directory(device));
    if has_arm { SEEK } else { Nanos(0) }
}

fn rotates(root: &Root, device: &str) -> bool {
    let rotational = root.read(format!("sys/block/{}/queue/rotational", directory(device)));
    rotational.is_ok_and(|text| text.trim() == "1")
}

#[cfg(test)]
mod tests {
    use eke_testkit::fake_kernel::FakeKernel;

    use super::*;

    #[test]
    fn only_a_disk_that_surely_has_an_arm_gets_credit_for_it() {
        let machine = FakeKernel::new();
        let root = machine.root();
        machine.put("sys/block/sdc/device/vendor", "QEMU    \n");
        for disk in ["sda", "vda", "sdc"] {
            machine.put(&format!("sys/block/{disk}/queue/rotational"), "1\n");
        }
        machine.put("sys/block/sdb/queue/rotational", "0\n");
        let seeks =
            |override_ms| ["sda", "vda", "sdb", "sdc"].map(|disk| seek(&root, disk, override_ms).0 > 0);
        assert_eq!((seeks(0), seeks(30)), ([true, false, false, false], [false; 4]));
    }
}
