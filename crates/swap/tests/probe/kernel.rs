//! What the kernel offers: zram, zswap, their algorithms.

use eke_model::units::Bytes;
use eke_swap::facts::{Facts, Hardware};

use crate::machine::Fake;

fn why<'a>(facts: &'a Facts, what: &str) -> &'a str {
    facts.missing.iter().find(|m| m.what == what).map_or("", |m| &m.why)
}

#[test]
fn an_empty_machine_lists_what_it_lacks() {
    let facts = Fake::new().facts();
    assert_eq!((facts.ram, facts.available, facts.is_root), (Bytes(2 << 30), Bytes(1 << 30), true));
    assert!(why(&facts, "zram").contains("/lib/modules has no module zram"), "{:?}", facts.missing);
    assert!(why(&facts, "zswap").contains("CONFIG_ZSWAP"));
    assert!(facts.zswap.is_none() && facts.on_battery.is_none() && facts.hibernation.is_none());
}

/// RHEL 8 has the file, and a read of it answers EOPNOTSUPP, as one of a directory fails, too.
#[test]
fn pressure_that_does_not_answer_is_missing() {
    let fake = Fake::new();
    fake.file("proc/pressure/memory/x", "");
    assert!(why(&fake.facts(), "pressure (PSI)").contains("psi=1 on its command line"));
    let fake = Fake::new();
    fake.file("proc/pressure/memory", "some avg10=0.00\n");
    assert_eq!(why(&fake.facts(), "pressure (PSI)"), "");
}

#[test]
fn the_kernels_configuration_explains_missing_zram() {
    let fake = Fake::new();
    fake.file("proc/sys/kernel/osrelease", "6.12.1\n").file("boot/config-6.12.1", "CONFIG_ZRAM=m\n");
    assert!(why(&fake.facts(), "zram").ends_with("/lib/modules has no module zram for this kernel"));
    fake.file("boot/config-6.12.1", "# CONFIG_ZRAM is not set\n");
    assert!(why(&fake.facts(), "zram").ends_with("built without CONFIG_ZRAM"));
}

#[test]
fn a_module_that_can_be_loaded_is_not_missing_and_the_configuration_shows_what_it_offers() {
    let fake = Fake::new();
    fake.file("proc/sys/kernel/osrelease", "6.12.1\n")
        .file("lib/modules/6.12.1/modules.dep", "kernel/drivers/block/zram/zram.ko.xz:\n");
    let facts = fake.facts();
    assert!(facts.zram.loadable && why(&facts, "zram").is_empty(), "{:?}", facts.missing);
    assert_eq!(facts.zram.configured, ["lzo-rle", "lzo", "lz4", "zstd"], "no configuration");
    assert_eq!(facts.zram.multi_comp, None);
    fake.file(
        "boot/config-6.12.1",
        "CONFIG_ZRAM=m\nCONFIG_ZRAM_BACKEND_LZ4=y\nCONFIG_ZRAM_BACKEND_ZSTD=y\nCONFIG_CRYPTO_842=m\n# CONFIG_ZRAM_MULTI_COMP is not set\n",
    );
    let facts = fake.facts();
    assert_eq!(facts.zram.configured, ["lz4", "zstd"]);
    assert_eq!(facts.zram.multi_comp, Some(false));
    fake.file("boot/config-6.12.1", "CONFIG_CRYPTO_LZO=y\nCONFIG_CRYPTO_ZSTD=m\nCONFIG_ZRAM_MULTI_COMP=y\n");
    let facts = fake.facts();
    assert_eq!(facts.zram.configured, ["lzo-rle", "lzo", "zstd"]);
    assert_eq!(facts.zram.multi_comp, Some(true));
}

#[test]
fn modules_are_found_in_each_systems_directory() {
    for dir in ["lib/modules", "usr/lib/modules", "run/booted-system/kernel-modules/lib/modules"] {
        let fake = Fake::new();
        fake.file("proc/sys/kernel/osrelease", "6.12.1\n")
            .file(&format!("{dir}/6.12.1/modules.dep"), "kernel/drivers/block/zram/zram.ko.xz:\n");
        assert!(fake.facts().zram.loadable, "{dir}");
    }
}

/// A hardened server forbids to load more modules. zswap with an algorithm that is built in works there.
#[test]
fn a_module_that_may_not_be_loaded_any_more_is_missing() {
    let fake = Fake::new();
    let p = "sys/module/zswap/parameters";
    fake.file(&format!("{p}/enabled"), "N\n").file("proc/crypto", "name : lzo\ntype : scomp\n");
    fake.file("proc/sys/kernel/osrelease", "6.12.1\n");
    fake.file(
        "lib/modules/6.12.1/modules.dep",
        "kernel/drivers/block/zram/zram.ko.xz:\nkernel/crypto/zstd.ko.xz:\n",
    );
    for (is_disabled, compressors) in [("0\n", &["lzo", "zstd"][..]), ("1\n", &["lzo"])] {
        let facts = fake.file("proc/sys/kernel/modules_disabled", is_disabled).facts();
        assert_eq!(facts.zram.loadable, is_disabled == "0\n");
        assert_eq!(facts.zswap.as_ref().unwrap().compressors, compressors);
        assert_eq!(why(&facts, "zram").contains("kernel.modules_disabled is 1"), is_disabled == "1\n");
    }
}

/// As on Arch, which keeps the modules of one kernel.
#[test]
fn modules_that_an_update_took_away_come_back_with_a_reboot() {
    let fake = Fake::new();
    fake.file("proc/sys/kernel/osrelease", "6.12.1\n").file("usr/lib/modules/6.12.2/modules.dep", "");
    assert!(why(&fake.facts(), "zram").contains("reboot first"), "{:?}", fake.facts().missing);
    fake.file("boot/config-6.12.1", "CONFIG_ZRAM=m\n");
    assert!(why(&fake.facts(), "zram").contains("reboot first"), "{:?}", fake.facts().missing);
    fake.file("boot/config-6.12.1", "# CONFIG_ZRAM is not set\n");
    assert!(why(&fake.facts(), "zram").ends_with("built without CONFIG_ZRAM"));
}

#[test]
fn a_device_shows_zrams_features() {
    let fake = Fake::new();
    fake.file("sys/class/zram-control/hot_add", "")
        .file("sys/block/zram0/comp_algorithm", "lzo-rle [zstd]\n");
    fake.file("sys/block/zram0/recomp_algorithm", "").file("sys/block/zram0/backing_dev", "none\n");
    let facts = fake.facts();
    let features = facts.zram.features.unwrap();
    assert_eq!(features.algorithms, ["lzo-rle", "zstd"]);
    assert!(features.recompression && features.writeback && !features.algorithm_params);
}

#[test]
fn zswap_and_its_loadable_algorithms() {
    let fake = Fake::new();
    let p = "sys/module/zswap/parameters";
    fake.file(&format!("{p}/enabled"), "N\n").file(&format!("{p}/compressor"), "lzo\n");
    fake.file(&format!("{p}/zpool"), "zbud\n").file(&format!("{p}/max_pool_percent"), "20\n");
    fake.file("proc/crypto", "name : lzo\ntype : scomp\n");
    fake.file("proc/sys/kernel/osrelease", "6.1.0\n");
    fake.file("lib/modules/6.1.0/modules.dep", "kernel/crypto/zstd.ko.xz:\nkernel/crypto/lzo.ko:\n");
    let z = fake.facts().zswap.unwrap();
    assert_eq!(
        (z.enabled, z.max_pool_percent, z.zpool.as_deref(), z.shrinker),
        (false, Some(20), Some("zbud"), None)
    );
    assert_eq!(z.compressors, ["lzo", "zstd"]);
    assert_eq!(z.hardware, []);
}

/// Algorithms of both lists whose driver with the highest priority is no program of the CPU.
#[test]
fn compressors_in_hardware_are_found_by_their_drivers() {
    let fake = Fake::new();
    let entry = |name: &str, driver: &str, module: &str, priority: u32, kind: &str| {
        format!(
            "name         : {name}\ndriver       : {driver}\nmodule       : {module}\npriority     : {priority}\nselftest     : passed\ntype         : {kind}\n\n"
        )
    };
    let crypto = entry("deflate", "deflate-generic", "deflate", 0, "compression")
        + &entry("deflate", "deflate-scomp", "deflate", 0, "scomp")
        + &entry("deflate", "deflate-iaa", "iaa_crypto", 300, "acomp")
        + &entry("842", "842-generic", "842", 100, "compression")
        + &entry("842", "842-nx", "nx_compress_powernv", 300, "compression");
    fake.file("proc/crypto", &crypto).file("sys/module/zswap/parameters/enabled", "N\n");
    fake.file("sys/class/zram-control/hot_add", "").file("sys/block/zram0/disksize", "0\n");
    fake.file("sys/block/zram0/comp_algorithm", "lzo [lzo-rle] 842 deflate\n");
    let hardware = |release: &str| {
        let facts = fake.file("proc/sys/kernel/osrelease", release).facts();
        let names = |all: &[Hardware]| {
            all.iter().map(|h| format!("{} by {}", h.algorithm, h.name())).collect::<Vec<_>>().join(", ")
        };
        (names(&facts.zram.hardware), names(&facts.zswap.unwrap().hardware))
    };
    let (nx, iaa) = ("842 by nx_compress_powernv".to_owned(), "deflate by iaa_crypto".to_owned());
    assert_eq!(hardware("6.9.0\n"), (nx.clone(), iaa.clone()));
    assert_eq!(hardware("6.12.0\n"), (String::new(), iaa), "zram has its own since Linux 6.12");
    assert_eq!(hardware("5.4.0\n"), (nx.clone(), nx), "zswap took synchronous ones until Linux 5.10");
}
