//! The kernel's settings: each from a measurement, or not at all.

use eke_model::config::BackendChoice;
use eke_model::step::Step;
use eke_model::units::{Bytes, Nanos};
use eke_swap::decide::Decision;
use eke_swap::facts::{DiskKind, GroupSwappiness};
use eke_swap::measure::measurements::DiskLatency;

use crate::machine::{Machine, device, notes, reads, reason_of, steps, value};

fn on(kind: DiskKind) -> Machine {
    Machine::usual().disk("/dev/sda2", kind, -2)
}

fn set(decision: &Decision, knob: &str) -> bool {
    decision.plan.steps.iter().any(|p| matches!(&p.step, Step::Set { knob: k, .. } if k == knob))
}

#[test]
fn a_table_of_gigabytes_is_named() {
    let reason = |gib: u64| reason_of(&Machine::new(Bytes::mib(gib << 10)).decide(), "swap on");
    assert!(reason(1024).contains("; its table takes 8.0 GiB of that at once"), "{}", reason(1024));
    assert!(!reason(64).contains("table"), "{}", reason(64));
}

#[test]
fn swappiness_needs_both_costs() {
    let no_time = |m: &mut Machine| m.measured.algorithms.iter_mut().for_each(|r| r.load_p50 = Nanos(0));
    let cases = [
        ("files not measured", Machine::usual().with(|m| m.measured.file_read = None)),
        ("a load without a time", Machine::usual().with(no_time)),
        ("no such knob", Machine::usual().with(|m| m.facts.swappiness = None)),
        ("as it should be", Machine::usual().with(|m| m.facts.swappiness = Some(188))),
    ];
    for (name, machine) in cases {
        let decision = machine.decide();
        assert!(!set(&decision, "vm.swappiness"), "{name}: {:#?}", steps(&decision));
    }
    let usual = Machine::usual().decide();
    assert_eq!(value(&usual, "vm.swappiness"), Some("188"));
    let reason = reason_of(&usual, "set vm.swappiness");
    assert_eq!(
        reason,
        "a page from zram takes 5.70 µs, one from a file 90.0 µs: by the formula of the kernel documentation"
    );
}

#[test]
fn swappiness_stays_within_the_kernels_range() {
    let slow_files = |kernel: &str| {
        let kernel = kernel.to_owned();
        Machine::usual().with(move |m| {
            m.measured.kernel = kernel;
            m.measured.file_read = Some(reads("/usr", 12_000));
        })
    };
    assert_eq!(value(&slow_files("6.18.5").decide(), "vm.swappiness"), Some("199"));
    let old = slow_files("5.4.0-150-generic").decide();
    assert_eq!(value(&old, "vm.swappiness"), Some("100"));
    assert!(reason_of(&old, "set vm.swappiness").ends_with("100 is the most before Linux 5.8"));
}

#[test]
fn groups_with_a_value_of_their_own_keep_it() {
    let group = |name: &str, swappiness| GroupSwappiness { group: name.into(), swappiness };
    let machine = Machine::usual()
        .with(|m| m.facts.memory_groups_v1 = vec![group("", 60), group("user", 60), group("database", 10)]);
    let changed: Vec<String> =
        steps(&machine.decide()).into_iter().filter(|s| s.contains("memory.swappiness")).collect();
    assert_eq!(changed, ["set memory.swappiness of user to 188"]);
    let unmeasured = machine.with(|m| m.measured.file_read = None).decide();
    assert!(!set(&unmeasured, "memory.swappiness"));
}

#[test]
fn page_cluster_goes_to_0_for_zram_alone() {
    assert_eq!(value(&Machine::usual().decide(), "vm.page-cluster"), Some("0"));
    assert!(!set(&Machine::usual().with(|m| m.facts.page_cluster = Some(0)).decide(), "vm.page-cluster"));
    assert!(!set(&on(DiskKind::Solid).decide(), "vm.page-cluster"), "neighbours come with one seek");
}

#[test]
fn the_multi_generational_lru_goes_on_where_the_user_asks_for_it_and_the_kernel_has_it_off() {
    let on = |machine: Machine, asked, lru_gen| {
        let asked = machine.with(|m| (m.overrides.settings.lru_gen, m.facts.lru_gen) = (asked, lru_gen));
        value(&asked.decide(), "lru_gen.enabled").map(str::to_owned)
    };
    let usual = |asked, lru_gen| on(Machine::usual(), asked, lru_gen);
    assert_eq!(usual(true, Some(false)).as_deref(), Some("0x0007"));
    assert_eq!([usual(false, Some(false)), usual(true, Some(true)), usual(true, None)], [None, None, None]);
    let disk = Machine::usual().disk("/dev/sda2", DiskKind::Solid, -2);
    assert_eq!(on(disk, true, Some(false)).as_deref(), Some("0x0007"));
}

#[test]
fn the_priority_is_above_every_area() {
    let card = |priority| Machine::usual().disk("/dev/mmcblk0p3", DiskKind::WearsOut, priority).decide();
    for (priority, ours) in
        [(-2, 100), (99, 100), (100, 101), (32_766, 32_767), (32_767, 32_767), (i32::MAX, 32_767)]
    {
        assert_eq!(device(&card(priority)).unwrap().swap_priority, Some(ours), "{priority}");
    }
    assert!(notes(&card(32_767)).contains("alternates between it and zram"), "{}", notes(&card(32_767)));
    assert!(!notes(&card(32_766)).contains("alternates"));
}

#[test]
fn the_slower_the_disk_the_larger_the_pool() {
    let on_disk = |kind, us| on(kind).with(move |m| m.measured.swap_disk = Some(reads("/dev/sda2", us)));
    let with = |us| on_disk(DiskKind::Rotating, us);
    for (us, percent, accept) in [(1_000, "50", "96"), (10_000, "80", "98"), (80_000, "80", "98")] {
        let decision = with(us).decide();
        assert_eq!(value(&decision, "zswap.max_pool_percent"), Some(percent));
        assert_eq!(value(&decision, "zswap.accept_threshold_percent"), Some(accept));
    }
    let on_request = with(10_000).with(|m| m.overrides.settings.pool_percent = 90).decide();
    assert_eq!(value(&on_request, "zswap.max_pool_percent"), Some("90"));
    let reason = reason_of(&on_request, "set zswap.max_pool_percent");
    assert_eq!(reason, "the slower the disk, the larger the pool: a page from /dev/sda2 costs 10.0 ms");
    let fast = on_disk(DiskKind::Solid, 80).decide();
    assert!(!set(&fast, "zswap.max_pool_percent"), "20 is what the kernel has");
}

#[test]
fn an_unmeasured_disk_is_judged_by_its_kind() {
    let unmeasured = |kind| on(kind).with(|m| m.measured.swap_disk = None);
    let seeks = unmeasured(DiskKind::Rotating).decide();
    assert_eq!(value(&seeks, "zswap.max_pool_percent"), Some("80"));
    assert!(reason_of(&seeks, "set zswap.max_pool_percent").ends_with("but it is on a rotating disk"));
    assert!(!set(&seeks, "vm.swappiness"), "nothing tells what a page costs that zswap lacks");
    assert!(!set(&unmeasured(DiskKind::Unknown).decide(), "zswap.max_pool_percent"));
    let too_large =
        unmeasured(DiskKind::Unknown).with(|m| m.facts.zswap.as_mut().unwrap().max_pool_percent = Some(90));
    assert_eq!(value(&too_large.decide(), "zswap.max_pool_percent"), Some("80"));
    let of_another = on(DiskKind::Rotating).with(|m| m.measured.swap_disk = Some(reads("/dev/sdx9", 50)));
    assert_eq!(value(&of_another.decide(), "zswap.max_pool_percent"), Some("80"));
}

/// Ubuntu's swap.img on a rotating disk: nothing was ever written to its blocks, so reading them takes microseconds.
#[test]
fn the_slower_of_swap_and_files_on_one_disk_counts() {
    let machine = |area_us: u64, files_us: u64| {
        on(DiskKind::Rotating).with(move |m| {
            m.measured.swap_disk = Some(reads("/dev/sda2", area_us));
            let device = Some("sda".into());
            m.measured.file_read = Some(DiskLatency { device, ..reads("/usr", files_us) });
        })
    };
    let fast = machine(4, 8_000).decide();
    assert_eq!(value(&fast, "zswap.max_pool_percent"), Some("80"));
    assert_eq!(value(&fast, "vm.swappiness"), Some("182"), "not 199");
    assert_eq!(fast.plan.prediction.as_ref().unwrap().load_p99_ns, 24_000_000);
    let reason = reason_of(&fast, "set zswap.max_pool_percent");
    assert!(
        reason.ends_with("a page from /dev/sda2 costs 8.00 ms, as files on the same disk do"),
        "{reason}"
    );
    let unread = machine(4, 8_000).with(|m| m.measured.swap_disk = None).decide();
    assert_eq!(unread.plan, fast.plan, "files alone");
    let slow = machine(10_000, 1_000).decide();
    assert!(reason_of(&slow, "set zswap.max_pool_percent").ends_with("costs 10.0 ms"));
    assert_eq!(slow.plan.prediction.unwrap().load_p99_ns, 30_000_000);
    let other_disk = machine(9_000, 20).with(|m| m.facts.disk_areas[0].device = Some("sdb".into()));
    assert!(reason_of(&other_disk.decide(), "set zswap.max_pool_percent").ends_with("costs 9.00 ms"));
}

#[test]
fn a_disk_that_claims_to_rotate_and_does_not_seek_is_no_slow_disk() {
    let machine = |kind, us| on(kind).with(move |m| m.measured.swap_disk = Some(reads("/dev/sda2", us)));
    let with = |kind, us| machine(kind, us).decide();
    let doubted = with(DiskKind::Rotating, 4);
    assert!(!set(&doubted, "zswap.max_pool_percent"), "20 is what the kernel has");
    assert!(!set(&doubted, "vm.swappiness"));
    let zswap_of = |percent| {
        let set = |m: &mut Machine| m.facts.zswap.as_mut().unwrap().max_pool_percent = Some(percent);
        machine(DiskKind::Rotating, 4).with(set).decide()
    };
    let reason = reason_of(&zswap_of(90), "set zswap.max_pool_percent").to_owned();
    assert!(reason.contains("/dev/sda2 answered in 4.00 µs, which no rotating disk does"), "{reason}");
    assert_eq!(value(&with(DiskKind::Rotating, 1_000), "zswap.max_pool_percent"), Some("50"));
    assert!(set(&with(DiskKind::Solid, 80), "vm.swappiness"));
}

/// Blocks of a file that were never written are not timed.
#[test]
fn a_swap_file_is_as_fast_as_it_answers_whatever_its_disk_claims() {
    let machine = |kind| {
        let with = Machine::usual().disk("/swap.img", kind, -2);
        with.with(|m| m.measured.swap_disk = Some(reads("/swap.img", 80))).decide()
    };
    let file = machine(DiskKind::Rotating);
    assert!(!set(&file, "zswap.max_pool_percent"), "20 is what the kernel has");
    assert!(set(&file, "vm.swappiness"));
    assert_eq!(value(&file, "vm.swappiness"), value(&machine(DiskKind::Solid), "vm.swappiness"));
}

/// zswap counts its pool in percent of all RAM, zram in bytes of what can be swapped.
#[test]
fn locked_memory_is_left_out_of_the_pool_and_named() {
    let half = |machine: Machine| machine.with(|m| m.facts.never_swapped = m.facts.ram);
    let why = "; only 2.0 GiB of RAM count, because 2.0 GiB are locked or reserved as huge pages";
    let disk = || on(DiskKind::Rotating).with(|m| m.measured.swap_disk = None);
    let zswap = half(disk()).decide();
    assert_eq!(value(&zswap, "zswap.max_pool_percent"), Some("40"));
    assert!(reason_of(&zswap, "set zswap.max_pool_percent").contains(why));
    let times = |decision: &Decision| decision.plan.prediction.as_ref().unwrap().holds_times_ram;
    assert!((times(&zswap) - times(&disk().decide())).abs() < 1e-9, "of what can be swapped");
    let zram = half(Machine::usual()).decide();
    assert!(reason_of(&zram, "swap on a new zram device").contains(why), "{:#?}", zram.plan.steps);
    assert_eq!(device(&zram), device(&Machine::usual().decide()));
    let little = Machine::usual().with(|m| m.facts.never_swapped = Bytes::mib(200)).decide();
    assert_eq!(little.plan, Machine::usual().decide().plan);
}

#[test]
fn zswap_switches_on_the_kernels_features() {
    let decision =
        on(DiskKind::Solid).with(|m| m.facts.zswap.as_mut().unwrap().zpool = Some("zbud".into())).decide();
    let expected = [
        "set zswap.zpool to zsmalloc",
        "set zswap.compressor to zstd",
        "set zswap.shrinker_enabled to Y",
        "set zswap.enabled to Y",
        "set vm.swappiness to 171",
    ];
    assert_eq!(steps(&decision), expected);
    let old = on(DiskKind::Solid).with(|m| m.facts.zswap.as_mut().unwrap().shrinker = None).decide();
    assert!(!set(&old, "zswap.shrinker_enabled"));
}

#[test]
fn zswaps_prediction_is_bounded_by_its_areas() {
    let zswap = || on(DiskKind::Solid).backend(BackendChoice::Zswap);
    let with = |mib| zswap().with(move |m| m.facts.areas[0].size = Bytes::mib(mib)).decide();
    let (large, small) = (with(8_000), with(200));
    let times = |d: &Decision| d.plan.prediction.as_ref().unwrap().holds_times_ram;
    assert!((times(&large) - 1.474).abs() < 0.001, "0.2 * (3.37 - 1): {}", times(&large));
    assert!((times(&small) - 1.069).abs() < 0.001, "200 MiB less their pool: {}", times(&small));
    assert!(!notes(&large).contains("swap area"), "{}", notes(&large));
    assert!(notes(&small).contains("and these have 200 MiB"), "{}", notes(&small));
}
