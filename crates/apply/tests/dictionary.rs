//! A zram device with a level and a dictionary, and the copy of the dictionary for devices that are added later.

#![allow(clippy::unwrap_used, reason = "test code")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use eke_apply::journal::{self, Journal};
use eke_apply::revert::{self, Outcome};
use eke_apply::script;
use eke_apply::session::Session;
use eke_apply::zram::{configure, kept_dictionary, remove};
use eke_linux::Root;
use eke_model::step::{Plan, Reason, Step, ZramSpec};
use eke_model::units::Bytes;
use eke_testkit::fake_kernel::FakeKernel;

const TMPFS: &str = "26 25 0:24 / /run rw,nosuid,nodev - tmpfs tmpfs rw,mode=755\n";

fn with_dictionary(path: &Path, swap_priority: Option<i16>) -> ZramSpec {
    ZramSpec {
        params: Some("level=8".into()),
        dictionary: Some(path.display().to_string()),
        swap_priority,
        ..ZramSpec::new("zstd", Bytes::mib(1))
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

/// The device's own copy has gone with its content.
#[test]
fn the_copy_goes_with_a_reset_although_the_device_stays() {
    let (machine, root) = machine(TMPFS, Some(100));
    machine.remove_area("/dev/zram0");
    std::fs::remove_file(root.path("sys/class/zram-control/hot_remove")).unwrap();
    assert!(remove(&root, "zram0").is_err());
    assert!(!root.exists(kept_dictionary("zram0")));
}

/// Somebody has removed the device by hand, and may have made another one by its number.
#[test]
fn the_copy_of_a_device_that_is_gone_goes_with_the_undo() {
    for by_hand in ["removed", "reused"] {
        let machine = FakeKernel::new();
        let root = machine.root();
        // The simulated kernel adds devices of a Linux before 6.12, so the copy is put there by hand.
        let spec = ZramSpec { params: None, dictionary: None, ..with_dictionary(Path::new(""), Some(100)) };
        let mut plan = Plan { remedy: "swap".into(), ..Plan::default() };
        plan.push(Step::AddZram(spec), Reason::new("for the test"));
        Session::open(&root, "swap").unwrap().apply_plan(&plan).unwrap();
        let kept = kept_dictionary("zram1");
        machine.put(&kept, "words");
        let shell = script::undo(&journal::entries(&root).unwrap());
        assert!(shell.contains(&format!("[ -e /sys/block/zram1/reset ] || rm -f /{kept}\n")), "{shell}");
        match by_hand {
            "removed" => remove_device(&machine, "zram1"),
            _ => machine.put("sys/block/zram1/disksize", "52428800\n"),
        }
        let undone = revert::all(&root, &Journal::open(&root).unwrap()).unwrap();
        let as_expected = match &undone[..] {
            [(_, Outcome::AsBefore)] => by_hand == "removed",
            [(_, Outcome::Kept(_))] => by_hand == "reused",
            _ => false,
        };
        assert!(as_expected && !root.exists(&kept), "{by_hand}: {undone:?}");
    }
}

fn remove_device(machine: &FakeKernel, name: &str) {
    machine.remove_area(&format!("/dev/{name}"));
    std::fs::remove_dir_all(machine.dir().join(format!("sys/block/{name}"))).unwrap();
}

#[test]
fn a_scratch_devices_is_not_kept_and_none_is_where_run_is_on_a_disk() {
    let disk = "25 1 8:1 / / rw - ext4 /dev/sda1 rw\n";
    for (mounts, priority) in [(TMPFS, None), (disk, Some(100)), ("", Some(100))] {
        let (_machine, root) = machine(mounts, priority);
        assert!(!root.exists(kept_dictionary("zram0")), "{mounts}");
    }
}
