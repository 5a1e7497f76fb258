//! Existing compressed swap.

use eke_model::config::{BackendChoice, ExistingChoice};
use eke_model::units::Bytes;
use eke_swap::decide::backend::Backend;
use eke_swap::facts::DiskKind;

use crate::machine::{Machine, device, notes, reason_of, steps, value};

fn with_zram() -> Machine {
    Machine::usual().zram("zram0", Bytes::mib(1024), 100)
}

fn ssd(machine: Machine) -> Machine {
    machine.disk("/dev/sda2", DiskKind::Solid, -2)
}

#[test]
fn adopted_gets_the_knobs_around_it_alone() {
    let machine = with_zram().manager("zram-tools", "/etc/default/zramswap", "zram0");
    let decision = machine.decide();
    assert_eq!(decision.backend, Backend::Adopted { device: "zram0".into() });
    assert_eq!(steps(&decision), ["set vm.page-cluster to 0", "set vm.swappiness to 195"]);
    let reason = &decision.backend_reason.text;
    assert!(
        reason.starts_with("zram0 is compressed swap already, set up by zram-tools: it is kept"),
        "{reason}"
    );
    let prediction = decision.plan.prediction.unwrap();
    assert_eq!(prediction.ratio, 2.74, "of its own algorithm");
    assert!((prediction.holds_times_ram - 1.32).abs() < 0.01, "{prediction:?}");
}

#[test]
fn of_two_that_claim_a_device_the_active_one_owns_it() {
    let machine = with_zram().manager("zram-tools", "/usr/sbin/zramswap", "zram0").manager(
        "rpi-swap",
        "/etc/rpi/swap.conf",
        "zram0",
    );
    let text = machine.with(|m| m.facts.managers[0].active = false).decide().backend_reason.text;
    assert!(text.contains("set up by rpi-swap"), "{text}");
}

/// zram-tools' default before a large partition: what comes back comes from the disk, where neighbours come with one seek.
#[test]
fn a_small_device_before_a_disk_costs_what_the_disk_does() {
    let small = |mib| ssd(Machine::usual()).zram("zram0", Bytes::mib(mib), 100);
    let decision = small(256).decide();
    assert_eq!(steps(&decision), ["set vm.swappiness to 109"]);
    assert_eq!(
        reason_of(&decision, "set vm.swappiness"),
        "a page from swap (about 25 % in zram, which is small, the others on /dev/sda2) takes 75.5 µs, one from a file 90.0 µs: by the formula of the kernel documentation"
    );
    assert_eq!(decision.plan.prediction.unwrap().load_p99_ns, 300_000);
    let two = small(128).zram("zram1", Bytes::mib(128), 100).decide();
    assert_eq!(value(&two, "vm.swappiness"), Some("109"), "both together");
    let usual = ["set vm.page-cluster to 0", "set vm.swappiness to 195"];
    assert_eq!(steps(&small(512).decide()), usual, "half of what is likely swapped");
    let area = |mib| small(256).with(move |m| m.facts.areas[0].size = Bytes::mib(mib)).decide();
    assert_eq!(steps(&area(256)), usual, "zram has half of the swap");
    assert_eq!(value(&area(264), "vm.swappiness"), Some("127"), "zram has nearly half of it");
}

/// `mkswap /dev/zram0; swapon /dev/zram0` gives it a lower priority than the disk has.
#[test]
fn a_device_behind_a_disk_costs_what_the_disk_does() {
    let with = |priority, mib| {
        let machine = ssd(Machine::usual()).zram("zram0", Bytes::mib(1024), priority);
        machine.with(|m| m.facts.areas[0].size = Bytes::mib(mib)).decide()
    };
    let decision = with(-3, 4096);
    assert_eq!(steps(&decision), ["set vm.swappiness to 95"]);
    let reason = reason_of(&decision, "set vm.swappiness");
    let from = "swap (about 0 % in zram, which is not filled first, the others on /dev/sda2) takes 100 µs";
    assert!(reason.contains(from), "{reason}");
    let note = "swap goes to /dev/sda2 first, because its priority (-2) is not below that of /dev/zram0 (-3)";
    assert!(notes(&decision).contains(note), "{}", notes(&decision));
    let in_turn = with(-2, 4096);
    assert_eq!(steps(&in_turn), ["set vm.swappiness to 128"]);
    assert!(notes(&in_turn).contains("/dev/sda2 in turn with zram"), "{}", notes(&in_turn));
    assert_eq!(value(&with(-3, 256), "vm.swappiness"), Some("154"), "what is left after a small disk");
    let before = with(5, 4096);
    assert_eq!(steps(&before), ["set vm.page-cluster to 0", "set vm.swappiness to 195"]);
    assert!(!notes(&before).contains("swap goes to"), "{}", notes(&before));
}

#[test]
fn a_small_device_before_an_unmeasured_disk_sets_nothing() {
    let small = || ssd(Machine::usual()).zram("zram0", Bytes::mib(256), 100);
    let unread = small().with(|m| m.measured.swap_disk = None).decide();
    assert_eq!(steps(&unread), [] as [&str; 0]);
    let no_row = small().with(|m| m.facts.zram_in_use[0].algorithm = "842".into()).decide();
    assert_eq!(steps(&no_row), [] as [&str; 0]);
}

#[test]
fn several_devices_are_all_named_and_counted() {
    let decision = with_zram().zram("zram1", Bytes::mib(1024), 100).decide();
    assert!(decision.backend_reason.text.starts_with("zram0, zram1 are compressed swap already: it is kept"));
    assert!(decision.plan.prediction.unwrap().holds_times_ram > 1.6);
}

#[test]
fn an_unmeasured_algorithm_borrows_no_numbers() {
    let decision = with_zram().with(|m| m.facts.zram_in_use[0].algorithm = "842".into()).decide();
    assert_eq!(steps(&decision), ["set vm.page-cluster to 0"]);
    assert_eq!(decision.plan.prediction, None);
}

#[test]
fn an_adopted_device_with_measured_settings_needs_no_step() {
    let decision =
        with_zram().with(|m| (m.facts.page_cluster, m.facts.swappiness) = (Some(0), Some(195))).decide();
    assert!(decision.plan.steps.is_empty(), "{:#?}", steps(&decision));
    assert!(decision.backend_reason.text.ends_with("every setting already has its measured value"));
}

#[test]
fn overrides_without_effect_on_an_adopted_device_are_named() {
    let machine = with_zram().with(|m| {
        m.overrides.settings.algorithm = "zstd".into();
        m.overrides.size = Some(Bytes::mib(64));
    });
    let notes = notes(&machine.decide());
    assert!(notes.contains("algorithm = \"zstd\" has no effect while zram0 is kept"), "{notes}");
    assert!(notes.contains("a size of 64 MiB has no effect"), "{notes}");
}

#[test]
fn zswap_is_switched_off_before_zram() {
    let off = "set zswap.enabled to N";
    for machine in [Machine::usual(), with_zram(), with_zram().existing(ExistingChoice::Replace)] {
        let decision = machine.zswap_on().decide();
        assert_eq!(steps(&decision)[0], off);
        assert!(reason_of(&decision, off).contains("compress every page twice"));
    }
}

#[test]
fn a_device_replaced_by_zram_goes_off_after_the_new_one_is_on() {
    let decision = with_zram().existing(ExistingChoice::Replace).decide();
    let steps = steps(&decision);
    assert!(steps[0].starts_with("swap on a new zram device: zstd"), "{steps:#?}");
    assert_eq!(steps[1], "swap off /dev/zram0");
    assert_eq!(device(&decision).unwrap().swap_priority, Some(101), "above the one that goes");
}

#[test]
fn a_device_replaced_by_zswap_goes_off_first() {
    let decision = ssd(with_zram()).existing(ExistingChoice::Replace).decide();
    let steps = steps(&decision);
    assert_eq!(steps[0], "swap off /dev/zram0");
    assert!(steps.contains(&"set zswap.enabled to Y".into()), "{steps:#?}");
    assert!(reason_of(&decision, "swap off").contains("zswap replaces it while the plan is applied"));
}

#[test]
fn zswap_beside_a_kept_zram_is_refused() {
    let text = ssd(with_zram()).backend(BackendChoice::Zswap).refusal();
    assert!(
        text.contains(
            "zram0 is compressed swap already, and both at once are never used: existing = \"replace\""
        ),
        "{text}"
    );
}

#[test]
fn left_alone_is_left_alone() {
    let kept =
        [with_zram(), ssd(with_zram()).backend(BackendChoice::Zswap), ssd(Machine::usual()).zswap_on()];
    for machine in kept {
        let decision = machine.existing(ExistingChoice::Leave).decide();
        assert_eq!((decision.backend, decision.plan.steps.len()), (Backend::Nothing, 0));
        assert!(
            decision.backend_reason.text.ends_with("existing = \"leave\""),
            "{:?}",
            decision.backend_reason
        );
    }
    let only_default = Machine::usual().zswap_on().existing(ExistingChoice::Leave).decide();
    assert_eq!(only_default.backend, Backend::Zram, "zswap without an area behind it does nothing");
}

/// As with `zswap.enabled=1 zswap.max_pool_percent=35` on the kernel's command line.
#[test]
fn zswap_that_is_on_is_named_and_its_pool_does_not_shrink() {
    let on = || {
        ssd(Machine::usual()).zswap_on().with(|m| m.facts.zswap.as_mut().unwrap().max_pool_percent = Some(35))
    };
    let decision = on().decide();
    assert_eq!(value(&decision, "zswap.max_pool_percent"), None);
    assert_eq!(value(&decision, "zswap.accept_threshold_percent"), Some("94"), "of the pool that stays");
    let note = "zswap is on already (lzo, at most 35 % of RAM), and the plan replaces values of it while eke is up (existing = \"leave\" keeps them)";
    assert!(notes(&decision).contains(note), "{}", notes(&decision));
    let asked = on().with(|m| m.overrides.settings.pool_percent = 25).decide();
    assert_eq!(value(&asked, "zswap.max_pool_percent"), Some("25"), "by the user's own limit");
    let off = on().with(|m| m.facts.zswap.as_mut().unwrap().enabled = false).decide();
    assert_eq!(value(&off, "zswap.max_pool_percent"), Some("20"));
    let ours = on().manager("eke", "", "").decide();
    assert!(![off, ours].iter().any(|decision| notes(decision).contains("is on already")));
}

#[test]
fn zswap_with_measured_settings_needs_no_step() {
    let planned = ssd(Machine::usual()).decide();
    let applied = ssd(Machine::usual()).with(|m| {
        let zswap = m.facts.zswap.as_mut().unwrap();
        zswap.enabled = true;
        zswap.compressor = value(&planned, "zswap.compressor").unwrap().into();
        zswap.shrinker = Some(true);
        m.facts.swappiness = value(&planned, "vm.swappiness").map(|v| v.parse().unwrap());
    });
    let decision = applied.decide();
    assert!(decision.plan.steps.is_empty(), "{:#?}", steps(&decision));
    assert!(decision.backend_reason.text.ends_with("every setting already has its measured value"));
    assert!(!notes(&decision).contains("boot-config"), "{}", notes(&decision));
}
