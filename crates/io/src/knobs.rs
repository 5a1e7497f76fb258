//! From the names that people use to the settings of the knob table.

use eke_apply::knob::{self, Knob};
use eke_apply::write::read_value;
use eke_linux::Root;

/// Prefixes of the settings that `compare` and `sweep` accept: of disks, schedulers, ZFS, writeback and the control group of all.
const AREAS: [&str; 5] = ["queue.", "iosched.", "zfs.", "vm.dirty_", "io."];

/// The target of the writeback throttle.
pub const THROTTLE: &str = "queue.wbt_lat_usec";

/// Finds a setting by its name in the table, by its file (`wbt_lat_usec`), or by the name of ZFS' parameter on Linux
/// (`zfs_vdev_async_write_max_active`) and FreeBSD (`vfs.zfs.vdev.async_write_max_active`).
///
/// # Errors
/// eke never changes it, with the reason; or it is unknown, with the list of known ones.
pub fn named(text: &str) -> Result<&'static Knob, String> {
    let name = text.trim();
    if let Some(denied) = knob::denied(name) {
        return Err(format!("{name} is never changed by eke: {}", denied.why));
    }
    // A setting of a group needs the group's name, which neither verb takes.
    let has_target = |k: &Knob| k.path.contains('*') && !is_of_disk(k);
    let is_ours = |k: &&Knob| AREAS.iter().any(|area| k.name.starts_with(area)) && !has_target(k);
    let all = || knob::KNOBS.iter().filter(is_ours);
    let zfs = name.strip_prefix("vfs.zfs.vdev.").or_else(|| name.strip_prefix("zfs_vdev_"));
    let zfs = zfs.map(|rest| format!("zfs.{rest}"));
    let last = |k: &Knob| k.path.rsplit('/').next().unwrap_or_default();
    let matches = |k: &&Knob| {
        k.name == name
            || zfs.as_deref() == Some(k.name)
            || last(k) == name
            || k.name.split_once('.').is_some_and(|(_, rest)| rest == name)
            || format!("queue/{}", last(k)) == name
    };
    all().find(matches).ok_or_else(|| {
        let known: Vec<&str> = all().map(|k| k.name).collect();
        format!("\"{name}\" is not a setting of disks that eke knows; there are: {}", known.join(", "))
    })
}

/// Does it belong to a disk, which must then be named?
pub fn is_of_disk(knob: &Knob) -> bool {
    knob.path.starts_with("sys/block/*")
}

/// Does the kernel heed it on this disk? BFQ switches the writeback throttle off; before Linux 6.2 its target still reads as if it was on, and any
/// write of it switches it on.
pub fn is_effective(root: &Root, knob: &str, disk: &str) -> bool {
    knob != THROTTLE || read_value(root, "queue.scheduler", disk).map_or(true, |scheduler| scheduler != "bfq")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_that_is_named_can_be_set() {
        for name in ["io.latency", "latency"] {
            let refused = named(name).unwrap_err();
            assert!(!refused.contains("io.latency,") && refused.contains("io.cost.qos"), "{refused}");
        }
        for knob in knob::KNOBS.iter().filter(|k| named(k.name).is_ok()) {
            let target = if is_of_disk(knob) { "sda" } else { "" };
            assert!(knob.path_for(target).is_some(), "{}", knob.name);
        }
    }

    #[test]
    fn settings_are_found_by_all_their_names() {
        let found = |text: &str| named(text).unwrap().name;
        for text in [
            "zfs_vdev_async_write_max_active",
            "vfs.zfs.vdev.async_write_max_active",
            "async_write_max_active",
            "zfs.async_write_max_active",
        ] {
            assert_eq!(found(text), "zfs.async_write_max_active", "{text}");
        }
        assert_eq!(found("wbt_lat_usec"), "queue.wbt_lat_usec");
        assert_eq!(found("queue/nr_requests"), "queue.nr_requests");
        assert_eq!(found("scheduler"), "queue.scheduler");
        assert_eq!(found("read_lat_nsec"), "iosched.read_lat_nsec");
        assert_eq!(found("dirty_bytes"), "vm.dirty_bytes");
        assert!(is_of_disk(named("scheduler").unwrap()) && !is_of_disk(named("vm.dirty_bytes").unwrap()));
    }

    #[test]
    fn settings_that_weaken_durability_are_refused_with_the_reason() {
        let refused = named("zfs_nocacheflush").unwrap_err();
        assert!(refused.contains("never changed") && refused.contains("power cut"), "{refused}");
        assert!(named("write_cache").unwrap_err().contains("never changed"));
        assert!(
            named("vm.swappiness").unwrap_err().contains("queue.scheduler"),
            "others do not belong to disks"
        );
    }
}
