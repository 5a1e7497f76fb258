//! Names of settings as people know them, to the table's. Pure.

use eke_apply::knob::{self, Knob};

/// The settings that `compare` and `sweep` know: of disks, of writeback, of ZFS, of groups.
const AREAS: [&str; 5] = ["queue.", "iosched.", "zfs.", "vm.dirty_", "io."];

/// Finds a setting by the table's name, by its file's (`wbt_lat_usec`), by ZFS' parameter on Linux (`zfs_vdev_async_write_max_active`) and
/// on FreeBSD (`vfs.zfs.vdev.async_write_max_active`).
///
/// # Errors
/// Why it is never changed, or that it is not known, with those that are.
pub fn named(text: &str) -> Result<&'static Knob, String> {
    let name = text.trim();
    if let Some(denied) = knob::denied(name) {
        return Err(format!("{name} is never changed by eke: {}", denied.why));
    }
    let all = || knob::KNOBS.iter().filter(|k| AREAS.iter().any(|area| k.name.starts_with(area)));
    let zfs = name.strip_prefix("vfs.zfs.vdev.").or_else(|| name.strip_prefix("zfs_vdev_"));
    let zfs = zfs.map(|rest| format!("zfs.{rest}"));
    let last = |k: &Knob| k.path.rsplit('/').next().unwrap_or_default();
    let is_meant = |k: &&Knob| {
        k.name == name
            || zfs.as_deref() == Some(k.name)
            || last(k) == name
            || k.name.split_once('.').is_some_and(|(_, rest)| rest == name)
            || format!("queue/{}", last(k)) == name
    };
    all().find(is_meant).ok_or_else(|| {
        let known: Vec<&str> = all().map(|k| k.name).collect();
        format!("\"{name}\" is not a setting of disks that eke knows; there are: {}", known.join(", "))
    })
}

/// Is it a disk's, so that a disk must be named?
pub fn is_of_disk(knob: &Knob) -> bool {
    knob.path.starts_with("sys/block/*")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_known_by_all_their_names() {
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
    fn what_weakens_durability_is_refused_with_its_reason() {
        let refused = named("zfs_nocacheflush").unwrap_err();
        assert!(refused.contains("never changed") && refused.contains("power cut"), "{refused}");
        assert!(named("write_cache").unwrap_err().contains("never changed"));
        assert!(named("vm.swappiness").unwrap_err().contains("queue.scheduler"), "others are not for disks");
    }
}
