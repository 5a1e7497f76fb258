//! What the control group of a program's starter lets it read.
//!
//! eke reads in its own group: a start must not make it read more than the starter could.

use std::path::PathBuf;

use eke_linux::Root;
use eke_model::units::Bytes;

use crate::group_memory::{groups_of, of_process};

/// The memory that eke may fill for this process: as much as each group on the way to it has left, and nothing where one has a limit for reads (`io.max`).
/// `None` without a limit, and with cgroup v1.
pub(super) fn room(root: &Root, pid: u32) -> Option<Bytes> {
    let process = pid.to_string();
    let io_max = |group: &PathBuf| root.read(group.join("io.max")).unwrap_or_default();
    if groups_of(root, &process).iter().any(|group| limits_reads(&io_max(group))) {
        return Some(Bytes(0));
    }
    of_process(root, &process).map(|memory| memory.left)
}

/// Whether a disk's reads are limited: `8:0 rbps=1048576 wbps=max riops=max wiops=max` (Documentation/admin-guide/cgroup-v2.rst).
fn limits_reads(io_max: &str) -> bool {
    let mut limits = io_max.split_ascii_whitespace().filter_map(|word| word.split_once('='));
    limits.any(|(key, limit)| matches!(key, "rbps" | "riops") && limit != "max")
}

#[cfg(test)]
mod tests {
    use eke_testkit::tree::put;

    use super::*;

    #[test]
    fn a_start_makes_eke_read_no_more_than_its_group_has_room_for() {
        let dir = tempfile::tempdir().unwrap();
        let (root, put) = (Root::at(dir.path()), |file: &str, text: &str| put(dir.path(), file, text));
        let app = "sys/fs/cgroup/user.slice/app.scope";
        put("proc/7/cgroup", "0::/user.slice/app.scope\n");
        assert_eq!(room(&root, 7), None, "no limits");
        put(&format!("{app}/memory.max"), "1000000\n");
        put(&format!("{app}/memory.current"), "900000\n");
        put(&format!("{app}/memory.stat"), "anon 500000\ninactive_file 300000\n");
        assert_eq!(room(&root, 7), Some(Bytes(400_000)));
        put(&format!("{app}/memory.high"), "700000\n");
        assert_eq!(room(&root, 7), Some(Bytes(100_000)), "systemd's MemoryHigh=");
        put("sys/fs/cgroup/user.slice/memory.max", "2000\n");
        put("sys/fs/cgroup/user.slice/memory.current", "1000\n");
        assert_eq!(room(&root, 7), Some(Bytes(1000)), "a group above it");
        put("sys/fs/cgroup/user.slice/io.max", "8:0 rbps=max wbps=4096 riops=max wiops=max\n");
        assert_eq!(room(&root, 7), Some(Bytes(1000)), "eke writes nothing for it");
        put("sys/fs/cgroup/user.slice/io.max", "8:0 rbps=1048576 wbps=max riops=max wiops=max\n");
        assert_eq!(room(&root, 7), Some(Bytes(0)));
        assert_eq!(room(&root, 8), None, "it has ended");
    }
}
