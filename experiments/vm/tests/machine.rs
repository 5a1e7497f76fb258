//! Real small machines. `EKE_VM=fetch` gets their parts, `EKE_VM=require` makes a missing kit a failure.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which fail by it")]

use std::sync::{Mutex, MutexGuard, PoisonError};

use eke_vm::{
    Cgroup, Disk, Ending, Error, Format, GuestFile, Kit, Outcome, Recipe, Userland, kit_for_tests, make_root,
    run,
};

/// One machine at a time: emulation needs all processors.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn kit() -> Option<(Kit, MutexGuard<'static, ()>)> {
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    kit_for_tests().unwrap().map(|kit| (kit, guard))
}

fn succeed(kit: &Kit, recipe: &Recipe) -> Outcome {
    let outcome = run(kit, recipe).unwrap();
    assert_eq!(outcome.status, 0, "output: {}\nconsole: {}", outcome.output, outcome.console);
    outcome
}

const SMALL: &str = r#"
set -e
awk '$1 == "MemTotal:" { print "memory", $2 }' /proc/meminfo
modprobe zram
echo "zram" $(cat /sys/block/zram0/comp_algorithm)
test -e /sys/block/zram0/backing_dev
test -e /sys/block/zram0/writeback
for name in deflate zstd lz4hc; do echo $name >/sys/module/zswap/parameters/compressor; done
for name in z3fold zsmalloc zbud; do echo $name >/sys/module/zswap/parameters/zpool; done
echo "zswap" $(cat /sys/module/zswap/parameters/compressor) $(cat /sys/module/zswap/parameters/zpool)
echo "cgroup" $(cat /sys/fs/cgroup/cgroup.subtree_control)
echo "lru" $(cat /sys/kernel/mm/lru_gen/enabled)
"#;

#[test]
fn a_machine_with_124_mb_has_the_features_of_the_experiments() {
    let Some((kit, _turn)) = kit() else { return };
    let outcome = succeed(&kit, &Recipe::new(SMALL));
    let line = |name: &str| outcome.output.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let memory: u64 = line("memory ").parse().unwrap();
    assert!((40 << 10..124 << 10).contains(&memory), "MemTotal {memory} kB");
    for algorithm in ["zstd", "lz4", "lz4hc", "lzo-rle"] {
        assert!(line("zram ").contains(algorithm), "{}", outcome.output);
    }
    assert_eq!(line("zswap "), "lz4hc zbud");
    assert!(line("cgroup ").contains("memory"), "{}", outcome.output);
    eprintln!("{}{:.1} s", outcome.output, outcome.seconds);
}

#[test]
fn disks_come_formatted_and_a_failing_script_has_its_status() {
    let Some((kit, _turn)) = kit() else { return };
    let place = tempfile::tempdir().unwrap();
    let script = "set -e; swapon /dev/vda; grep -c vda /proc/swaps; mount -t ext4 /dev/vdb /newroot\n\
                  ls /newroot; ls -d /sys/fs/cgroup/memory /sys/fs/cgroup/unified; printf end; exit 7";
    let mut recipe = Recipe::new(script);
    recipe.cgroup = Cgroup::Hybrid;
    recipe.disks.push(Disk::new(place.path().join("swap"), 32 << 20, Format::Swap));
    recipe
        .disks
        .push(Disk { iops: Some(200), ..Disk::new(place.path().join("ext4"), 16 << 20, Format::Ext4) });
    let outcome = run(&kit, &recipe).unwrap();
    assert_eq!(outcome.status, 7, "{outcome:?}");
    assert_eq!(outcome.output, "1\nlost+found\n/sys/fs/cgroup/memory\n/sys/fs/cgroup/unified\nend");
}

#[test]
fn a_root_disk_survives_a_reboot_with_its_boot_hook() {
    let Some((kit, _turn)) = kit() else { return };
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("root");
    let hook = "#!/bin/sh\necho $1 >>/var/log/hook\n";
    let files =
        ["/etc/rc2.d/S50hook", "/etc/rc0.d/K50hook"].map(|path| GuestFile::new(path, 0o755, hook)).to_vec();
    make_root(&kit, &root, 64 << 20, &Userland { files, ..Userland::default() }).unwrap();
    let first =
        Recipe::new("echo kept >/var/lib/first; cat /var/log/hook; grep ' / ' /proc/mounts").on_root(&root);
    let outcome = succeed(&kit, &first);
    assert!(outcome.output.starts_with("start\n/dev/vda / ext4"), "{}", outcome.output);
    let mut second =
        Recipe::new("cat /var/lib/first /var/log/hook; echo lost >/var/lib/second").on_root(&root);
    second.ending = Ending::PowerCut;
    assert_eq!(succeed(&kit, &second).output, "kept\nstart\nstop\nstart\n");
    let third =
        Recipe::new("cat /var/lib/second; modprobe zram && grep -c start /var/log/hook").on_root(&root);
    let output = succeed(&kit, &third).output;
    assert!(!output.contains("lost\n"), "the power cut kept unsynced data: {output}");
}

#[test]
fn a_machine_that_hangs_or_dies_is_an_error_with_its_last_words() {
    let Some((kit, _turn)) = kit() else { return };
    let mut recipe = Recipe::new("sleep 600");
    recipe.timeout = std::time::Duration::from_secs(4);
    let error = run(&kit, &recipe).unwrap_err();
    assert!(matches!(&error, Error::TimedOut { .. }), "{error}");
    let error = run(&kit, &Recipe::new("echo last words; echo c >/proc/sysrq-trigger")).unwrap_err();
    let Error::Ended { trace, .. } = &error else { unreachable!("{error}") };
    assert_eq!(trace.output, "last words\n");
    assert!(trace.console.contains("Kernel panic"), "{error}");
}
