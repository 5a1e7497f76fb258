//! What a measurement leaves loaded: nothing that was not loaded before.

#![expect(clippy::unwrap_used, reason = "a failing test panics")]

use eke_apply::journal;
use eke_model::config::{Settings, SwapSettings};
use eke_swap::Swap;
use eke_swap::facts::{Facts, ZramFacts};
use eke_testkit::fake_kernel::FakeKernel;

mod fake_process;

const MODULES: &str = "kernel/crypto/lz4.ko.xz: kernel/lib/lz4/lz4_compress.ko.xz\nkernel/crypto/lzo-rle.ko.xz:\nkernel/crypto/zstd.ko.xz:\n";

fn settings() -> SwapSettings {
    Settings::from_sources(&[]).unwrap().swap
}

/// The machine's log of modules, after a measurement by root on this release. zstd was loaded before.
fn modules_of(release: &str) -> Vec<String> {
    let machine = FakeKernel::new();
    machine.put("proc/sys/kernel/osrelease", release);
    machine.put(&format!("lib/modules/{release}/modules.dep"), MODULES);
    std::fs::create_dir_all(machine.dir().join("sys/module/zstd")).unwrap();
    fake_process::put(machine.dir(), 10, 400);
    let before = machine.tree();
    let zram = ZramFacts { control: true, ..ZramFacts::default() };
    let facts = Facts { is_root: true, cpus: 1, zram, ..Facts::default() };
    let measured = Swap.measure(&machine.root(), &facts).unwrap();
    assert!(measured.algorithms.iter().any(|a| a.name == "zstd" && a.in_zram), "{measured:#?}");
    assert_eq!(machine.tree(), before);
    assert_eq!(journal::entries(&machine.root()).unwrap(), []);
    machine.log().into_iter().filter(|line| line.contains("sys/module")).collect()
}

#[test]
fn modules_that_a_measurement_loads_are_unloaded_and_no_others() {
    let expected = [
        "load sys/module/lzo_rle",
        "load sys/module/lz4",
        "unload sys/module/lz4",
        "unload sys/module/lzo_rle",
    ];
    assert_eq!(modules_of("6.1.0-50-amd64"), expected);
}

/// A fresh Debian: zram is a module that nothing has loaded.
#[test]
fn zram_is_loaded_before_the_measurement_and_measured_on_a_device() {
    let machine = FakeKernel::new();
    machine.make_zram_loadable(
        "6.12.1",
        "kernel/drivers/block/zram/zram.ko.xz: kernel/mm/zsmalloc.ko.xz\nkernel/crypto/lzo.ko.xz:\n",
    );
    machine.put("proc/self/status", "Uid:\t0\t0\t0\t0\n");
    // What zswap alone offers is estimated in front of a disk.
    machine.add_area("/dev/sda2", 1 << 20, 0, -2);
    fake_process::put(machine.dir(), 10, 400);
    let before = machine.tree();
    let facts = Swap.probe(&machine.root()).unwrap();
    assert!(!facts.zram.control && facts.zram.loadable && facts.is_root);
    let measured = Swap.measure(&machine.root(), &facts).unwrap();
    let features = measured.zram_features.unwrap();
    assert_eq!(features.algorithms, ["lzo-rle", "lz4", "zstd"], "those that a device lists");
    assert!(measured.algorithms.iter().all(|row| !row.estimated || !features.algorithms.contains(&row.name)));
    let lzo = measured.unmeasured.iter().find(|missing| missing.what == "lzo").unwrap();
    assert!(
        lzo.why.ends_with("does not offer it") && !lzo.why.contains("root"),
        "only zswap has it: {lzo:?}"
    );
    let log = machine.log();
    let at = |what: &str| log.iter().position(|line| line.contains(what)).unwrap();
    assert!(at("load sys/module/zram") < at("hot_add"), "{log:?}");
    assert_eq!(log.iter().filter(|line| line.ends_with("sys/module/zram")).count(), 2, "{log:?}");
    assert_eq!(machine.tree(), before, "a plan changes nothing");
}

#[test]
fn at_boot_the_usual_algorithms_are_measured_or_the_one_of_the_settings() {
    let measured = |algorithm: &str| {
        let machine = FakeKernel::new();
        machine.put("proc/sys/kernel/osrelease", "6.1.0");
        // Each measurement would estimate what zswap alone offers.
        machine.add_area("/dev/sda2", 1 << 20, 0, -2);
        fake_process::put(machine.dir(), 10, 400);
        let zram = ZramFacts { control: true, ..ZramFacts::default() };
        let facts = Facts { is_root: true, cpus: 1, zram, ..Swap.probe(&machine.root()).unwrap() };
        let settings = SwapSettings { algorithm: algorithm.into(), ..settings() };
        let measured = Swap.measure_at_boot(&machine.root(), &facts, &settings).unwrap();
        measured.algorithms.into_iter().map(|row| (row.name, row.estimated)).collect::<Vec<_>>()
    };
    let on_zram = |name: &str| (name.to_owned(), false);
    assert_eq!(measured("auto"), ["lzo-rle", "lz4", "zstd"].map(on_zram));
    assert_eq!(measured("lz4"), ["lz4"].map(on_zram));
}

#[test]
fn newer_kernels_load_them_with_zram() {
    assert_eq!(modules_of("6.12.107+deb13-amd64"), [""; 0]);
}
