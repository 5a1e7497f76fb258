//! A box that swaps to a slow disk.

mod common;

use std::process::Command;
use std::sync::atomic::AtomicBool;

use common::{ScratchSwap, stressor};
use eke_apply::cgroup;
use eke_linux::Root;
use eke_model::units::Bytes;
use eke_sandbox::cgroup_box::{self, BoxSpec, Output};
use eke_sandbox::stressor::{StressorReport, StressorSpec};
use eke_slow_disk::{Image, Profile, SlowDisk, SlowDiskSpec};
use eke_testkit::real::{SameDisks, lacking, no_program, skip};

#[test]
fn a_box_swaps_to_it_and_its_pages_are_whole() {
    // no test can end a machine that waits for a server that waits for memory
    if std::env::var_os("EKE_SWAP_ON_SLOW_DISK").is_none() {
        return skip(
            "a_box_swaps_to_it_and_its_pages_are_whole",
            "it can wedge the machine; EKE_SWAP_ON_SLOW_DISK=1 runs it",
        );
    }
    let groups = cgroup::GroupParent::find(&Root::host()).err().map(|e| e.to_string());
    let missing = lacking(&["/dev/fuse", "/dev/loop-control"]).or_else(|| no_program(&["losetup", "mkswap"]));
    if let Some(why) = missing.or(groups) {
        return skip("a_box_swaps_to_it_and_its_pages_are_whole", &why);
    }
    let _clean = SameDisks::start();
    let profile = Profile { rate: 400_000_000, iops: Some(5_000), depth: 4, ..Profile::plain() };
    let spec = SlowDiskSpec::new(Image::Memory, Bytes::mib(256), profile);
    let disk = SlowDisk::attach(&Root::host(), spec).unwrap();
    if !disk.may_hold_swap() {
        return skip("a_box_swaps_to_it_and_its_pages_are_whole", "memory cannot be locked here");
    }
    assert!(Command::new("mkswap").arg(disk.device()).output().unwrap().status.success());
    let swap = ScratchSwap::file(disk.device()).unwrap();
    let stressor =
        stressor(&StressorSpec { size: Bytes::mib(48), passes: Some(1), ..StressorSpec::default() });
    let spec = BoxSpec { output: Output::Capture, ..BoxSpec::new(Bytes::mib(32), stressor) };
    let report = cgroup_box::run(&Root::host(), &spec, &AtomicBool::new(false)).unwrap();
    drop(swap);
    let stats = disk.stats();
    disk.detach().unwrap();
    assert_eq!((report.exit_code, report.oom_killed), (Some(0), false), "{report:?}");
    let stressor: StressorReport = serde_json::from_str(report.stdout.as_deref().unwrap()).unwrap();
    assert_eq!((stressor.corrupted_pages, stressor.passes), (0, 1));
    assert!(stats.writes.bytes > Bytes::mib(16) && stats.reads.requests > 100, "{stats:?}");
    assert_eq!(stats.errors, 0, "{stats:?}");
}
