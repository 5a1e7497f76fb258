//! What a measurement leaves loaded: nothing that was not loaded before.

#![expect(clippy::unwrap_used, reason = "a failing test panics")]

use eke_apply::journal;
use eke_swap::Swap;
use eke_swap::facts::{Facts, ZramFacts};
use eke_testkit::fake_kernel::FakeKernel;

mod fake_process;

const MODULES: &str = "kernel/crypto/lz4.ko.xz: kernel/lib/lz4/lz4_compress.ko.xz\nkernel/crypto/lzo-rle.ko.xz:\nkernel/crypto/zstd.ko.xz:\n";

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

#[test]
fn newer_kernels_load_them_with_zram() {
    assert_eq!(modules_of("6.12.107+deb13-amd64"), [""; 0]);
}
