//! A zram device with a level and a dictionary, and the copy of the dictionary for devices that are added later.

#![allow(clippy::unwrap_used, reason = "test code")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use eke_apply::zram::{configure, kept_dictionary, remove};
use eke_linux::Root;
use eke_model::step::ZramSpec;
use eke_model::units::Bytes;
use eke_testkit::fake_kernel::FakeKernel;

const TMPFS: &str = "26 25 0:24 / /run rw,nosuid,nodev - tmpfs tmpfs rw,mode=755\n";

fn with_dictionary(path: &Path, swap_priority: Option<i16>) -> ZramSpec {
    ZramSpec {
        algorithm: "zstd".into(),
        params: Some("level=8".into()),
        dictionary: Some(path.display().to_string()),
        recompress_with: None,
        backing_dev: None,
        backing_file: None,
        disksize: Bytes::mib(1),
        swap_priority,
    }
}

/// A machine whose zram0 has a dictionary of this content, with these mounts.
fn machine(mounts: &str, swap_priority: Option<i16>) -> (Arc<FakeKernel>, Root) {
    let machine = FakeKernel::new();
    machine.put("proc/self/mountinfo", mounts);
    machine.put("sys/block/zram0/algorithm_params", "");
    machine.put("trained", "words");
    machine.put("run/eke/journal.jsonl", "");
    let root = machine.root();
    configure(&root, "zram0", &with_dictionary(&root.path("trained"), swap_priority)).unwrap();
    (machine, root)
}

/// One write: a second one would reset what the first one set (comp_params_store, zram_drv.c).
#[test]
fn the_level_and_the_dictionary_are_one_write() {
    let (machine, root) = machine(TMPFS, None);
    let params = root.read("sys/block/zram0/algorithm_params").unwrap();
    assert_eq!(params.trim(), format!("level=8 dict={}", root.path("trained").display()));
    let writes = machine.log().iter().filter(|line| line.contains("algorithm_params")).count();
    assert_eq!(writes, 1, "{:?}", machine.log());
}

#[test]
fn the_dictionary_of_swap_is_kept_for_root_until_the_device_goes() {
    let (machine, root) = machine(TMPFS, Some(100));
    let kept = root.path(kept_dictionary("zram0"));
    assert_eq!(root.read_at(&kept).unwrap(), b"words");
    assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    machine.remove_area("/dev/zram0");
    remove(&root, "zram0").unwrap();
    assert!(!kept.exists());
}

#[test]
fn a_scratch_devices_is_not_kept_and_none_is_where_run_is_on_a_disk() {
    let disk = "25 1 8:1 / / rw - ext4 /dev/sda1 rw\n";
    for (mounts, priority) in [(TMPFS, None), (disk, Some(100)), ("", Some(100))] {
        let (_machine, root) = machine(mounts, priority);
        assert!(!root.exists(kept_dictionary("zram0")), "{mounts}");
    }
}
