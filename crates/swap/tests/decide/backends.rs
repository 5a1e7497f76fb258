//! zram, zswap, or nothing: by the machine, and by request.

use eke_model::config::BackendChoice;
use eke_model::units::Bytes;
use eke_swap::decide::backend::Backend;
use eke_swap::facts::{DiskKind, Hibernation};

use crate::machine::{Machine, notes, steps};

fn zswap(area: &str) -> Backend {
    Backend::Zswap { area: area.into() }
}

/// Each machine, its back end, and a part of its reason.
fn check(cases: Vec<(&str, Machine, Backend, &str)>) {
    for (name, machine, backend, reason) in cases {
        let decision = machine.decide();
        assert_eq!(decision.backend, backend, "{name}: {}", decision.backend_reason.text);
        let text = &decision.backend_reason.text;
        assert!(text.contains(reason), "{name}: {text}");
        let adds = steps(&decision).iter().any(|s| s.starts_with("swap on a new zram device"));
        assert_eq!(adds, backend == Backend::Zram, "{name}: {:#?}", steps(&decision));
        assert_eq!(steps(&decision).is_empty(), backend == Backend::Nothing, "{name}");
    }
}

/// zsmalloc evicts since Linux 6.2, and the plan promises no more.
#[test]
fn before_linux_6_2_the_plan_promises_no_eviction() {
    for (kernel, evicts) in [("6.1.0-50-amd64", false), ("6.2.0", true)] {
        let mut machine = Machine::usual().disk("/dev/sda2", DiskKind::Rotating, -2);
        machine.measured.kernel = kernel.into();
        machine.facts.zswap.as_mut().unwrap().zpool = Some("zbud".into());
        let decision = machine.decide();
        let why = &decision.backend_reason.text;
        assert_eq!(why.contains("cold ones move to the disk"), evicts, "{why}");
        let zpool = decision.plan.steps.iter().find(|p| p.step.to_string().contains("zsmalloc")).unwrap();
        assert_eq!(zpool.reason.text.contains("go past a full pool"), !evicts, "{}", zpool.reason.text);
    }
}

#[test]
fn by_the_kind_of_disk() {
    use DiskKind::{Network, Rotating, Solid, Unknown, WearsOut};
    let on = |path, kind| Machine::usual().disk(path, kind, -2);
    check(vec![
        ("no swap", Machine::usual(), Backend::Zram, "there is no swap on a disk"),
        ("hard disk", on("/dev/sda2", Rotating), zswap("/dev/sda2"), "a rotating disk"),
        ("SSD", on("/dev/nvme0n1p3", Solid), zswap("/dev/nvme0n1p3"), "a solid-state disk"),
        (
            "SD card",
            on("/dev/mmcblk0p3", WearsOut),
            Backend::Zram,
            "wears out (/dev/mmcblk0p3): compressed pages stay in RAM and spare it",
        ),
        ("network", on("/dev/nbd0", Network), Backend::Zram, "where swapping can stall"),
        ("virtual disk", on("/dev/vda2", Unknown), zswap("/dev/vda2"), "not known to wear out"),
        (
            "swap file on an SSD",
            on("/swapfile", Solid),
            zswap("/swapfile"),
            "(/swapfile, a solid-state disk)",
        ),
        ("swap file on a card", on("/var/swap", WearsOut), Backend::Zram, "(/var/swap)"),
    ]);
}

/// An installer's 1 GB beside 16 GB of RAM.
#[test]
fn a_small_area_gives_zswap_too_few_slots() {
    let with = |mib| {
        Machine::usual()
            .disk("/dev/sda2", DiskKind::Solid, -2)
            .with(|m| m.facts.areas[0].size = Bytes::mib(mib))
    };
    let small = "swap on disks has only 200 MiB, 10 % of RAM: zswap needs a slot";
    check(vec![
        ("small", with(200), Backend::Zram, small),
        ("half of RAM", with(1024), zswap("/dev/sda2"), "a solid-state disk"),
        ("small, no zram", with(200).no_zram(), zswap("/dev/sda2"), "a solid-state disk"),
        ("two small", with(600).disk("/swap.img", DiskKind::Solid, -3), zswap("/dev/sda2"), "solid-state"),
        ("requested", with(200).backend(BackendChoice::Zswap), zswap("/dev/sda2"), "requested"),
    ]);
    let holds = |m: Machine| m.decide().plan.prediction.unwrap().holds_times_ram;
    assert!(holds(with(200)) > 2.0 * holds(with(200).backend(BackendChoice::Zswap)));
    assert!(notes(&with(200).decide()).contains("/dev/sda2 stays on behind zram"));
}

/// One of ten pages comes from the disk.
#[test]
fn zswaps_slowest_pages_are_the_disks() {
    let machine = Machine::usual().disk("/dev/sda2", DiskKind::Rotating, -2);
    let predicted = machine.decide().plan.prediction.unwrap();
    let disk = machine.measured.swap_disk.unwrap();
    assert_eq!((predicted.load_p50_ns, predicted.load_p99_ns), (5_700, disk.p99.0));
}

#[test]
fn of_several_areas_the_one_with_the_highest_priority_decides() {
    use DiskKind::{Rotating, Solid, WearsOut};
    let two = |first, second| Machine::usual().disk("/dev/sda2", first, -3).disk("/dev/sdb2", second, 10);
    check(vec![
        ("a card behind an SSD", two(WearsOut, Solid), zswap("/dev/sdb2"), "/dev/sdb2"),
        ("a disk behind a card", two(Rotating, WearsOut), Backend::Zram, "/dev/sdb2"),
        (
            "two of one priority",
            Machine::usual().disk("/dev/sda2", Solid, 5).disk("/dev/sdb2", WearsOut, 5),
            zswap("/dev/sda2"),
            "/dev/sda2",
        ),
    ]);
}

#[test]
fn by_the_kernels_features() {
    let ssd = || Machine::usual().disk("/dev/sda2", DiskKind::Solid, -2);
    let card = || Machine::usual().disk("/dev/mmcblk0p3", DiskKind::WearsOut, -2);
    let module = |m: Machine| m.with(|m| (m.facts.zram.control, m.facts.zram.loadable) = (false, true));
    check(vec![
        (
            "SSD, no zswap",
            ssd().no_zswap(),
            Backend::Zram,
            "zram in front of /dev/sda2, because this kernel has no zswap",
        ),
        ("card, no zram", card().no_zram(), zswap("/dev/mmcblk0p3"), "zram is missing: no CONFIG_ZRAM"),
        (
            "SSD, neither",
            ssd().no_zram().no_zswap(),
            Backend::Nothing,
            "no CONFIG_ZRAM; zswap is missing: no CONFIG_ZSWAP",
        ),
        (
            "no swap, no zram",
            Machine::usual().no_zram(),
            Backend::Nothing,
            "zswap needs swap on a disk behind it",
        ),
        ("zram as a module", module(Machine::usual()), Backend::Zram, "no swap on a disk"),
    ]);
    assert_eq!(steps(&module(Machine::usual()).decide())[0], "load the kernel module zram");
}

#[test]
fn without_a_back_end_the_reason_is_given() {
    let with = |change: fn(&mut Machine)| Machine::usual().with(change);
    check(vec![
        (
            "container",
            with(|m| m.facts.container = Some("/.dockerenv".into())),
            Backend::Nothing,
            "this is a container (/.dockerenv): swap and settings belong to its host",
        ),
        (
            "WSL",
            with(|m| (m.facts.container, m.facts.wsl) = (Some("/proc/self/ns/pid".into()), true)),
            Backend::Nothing,
            "this is WSL, a virtual machine of Windows: its swap is set there, in .wslconfig",
        ),
        (
            "no swap in the kernel",
            Machine::usual().lacks("swap", "no /proc/swaps"),
            Backend::Nothing,
            "no /proc/swaps",
        ),
        (
            "a node of Kubernetes",
            with(|m| m.facts.kubelet = Some("process 812".into())),
            Backend::Nothing,
            "kubelet (process 812) does not start again once swap is on",
        ),
        (
            "a node of Kubernetes without root",
            with(|m| m.facts.is_root = false).lacks("kubelet", "cannot read /var/lib/kubelet/config.yaml"),
            Backend::Nothing,
            "cannot read /var/lib/kubelet/config.yaml; run as root",
        ),
        (
            "a kernel that never overcommits",
            with(|m| m.facts.overcommit_memory = Some(2)),
            Backend::Nothing,
            "vm.overcommit_memory is 2, and its limit counts swap",
        ),
        ("RAM unknown", Machine::new(Bytes(0)), Backend::Nothing, "shows 0 B of RAM"),
        (
            "nothing measured",
            with(|m| m.measured.algorithms.clear()),
            Backend::Nothing,
            "no algorithm could be measured",
        ),
    ]);
    let asked = with(|m| m.facts.container = Some("lxc".into())).backend(BackendChoice::Zram);
    assert_eq!(asked.decide().backend, Backend::Nothing);
}

/// zswap adds no swap, and what is on already is counted already.
#[test]
fn a_kernel_that_never_overcommits_gets_no_more_swap_unless_asked() {
    let limited = |machine: Machine| machine.with(|m| m.facts.overcommit_memory = Some(2));
    let disk = || Machine::usual().disk("/dev/sda2", DiskKind::Solid, -2);
    let zram = || Machine::usual().zram("zram0", Bytes::mib(512), 100);
    assert_eq!(limited(disk()).decide().plan, disk().decide().plan);
    assert_eq!(limited(zram()).decide().plan, zram().decide().plan);
    let asked = limited(Machine::usual()).backend(BackendChoice::Zram).decide();
    assert_eq!(asked.backend, Backend::Zram);
    let advice = &asked.plan.advice;
    assert!(advice.iter().any(|a| a.text.contains("(CommitLimit) grows by the size of zram")), "{advice:?}");
}

/// Its kubelet runs beside swap already.
#[test]
fn a_node_of_kubernetes_with_swap_is_as_any_machine() {
    let node = |machine: Machine| machine.with(|m| m.facts.kubelet = Some("process 812".into()));
    let disk = || Machine::usual().disk("/dev/sda2", DiskKind::Solid, -2);
    let zram = || Machine::usual().zram("zram0", Bytes::mib(512), 100);
    assert_eq!(disk().lacks("kubelet", "cannot read it").decide().plan, disk().decide().plan);
    assert_eq!(node(disk()).decide().plan, disk().decide().plan);
    assert_eq!(node(zram()).decide().plan, zram().decide().plan);
    assert_eq!(node(Machine::usual()).backend(BackendChoice::Zram).decide().backend, Backend::Nothing);
}

#[test]
fn failed_measurements_are_named() {
    let machine = Machine::usual().with(|m| {
        m.measured.algorithms.clear();
        m.overrides.settings.algorithm = "zstd".into();
        let why = "the memory of 9 processes may not be read; that needs root (try with sudo)";
        m.measured.unmeasured.push(eke_swap::facts::Missing::new("compression", why));
    });
    let text = machine.decide().backend_reason.text;
    assert!(text.starts_with("nothing is set up: no algorithm could be measured (the memory of 9"), "{text}");
}

#[test]
fn a_request_is_granted_or_refused_with_the_reason() {
    let ssd = || Machine::usual().disk("/dev/sda2", DiskKind::Solid, -2);
    let card = || Machine::usual().disk("/dev/mmcblk0p3", DiskKind::WearsOut, -2);
    check(vec![
        ("zram on an SSD", ssd().backend(BackendChoice::Zram), Backend::Zram, "because it was requested"),
        (
            "zswap on a card",
            card().backend(BackendChoice::Zswap),
            zswap("/dev/mmcblk0p3"),
            "because it was requested",
        ),
    ]);
    let refused = [
        (
            ssd().no_zram().backend(BackendChoice::Zram),
            "backend = \"zram\", but zram is missing: no CONFIG_ZRAM",
        ),
        (
            ssd().no_zswap().backend(BackendChoice::Zswap),
            "backend = \"zswap\", but zswap is missing: no CONFIG_ZSWAP",
        ),
        (Machine::usual().backend(BackendChoice::Zswap), "`swapon` one first"),
        (
            ssd().with(|m| m.overrides.size = Some(Bytes::mib(1 << 30))),
            "is for zram, and this machine gets zswap",
        ),
    ];
    for (machine, part) in refused {
        let text = machine.refusal();
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn zswap_on_a_card_has_no_shrinker() {
    let card = Machine::usual().disk("/dev/mmcblk0p3", DiskKind::WearsOut, -2).backend(BackendChoice::Zswap);
    let decision = card.decide();
    assert!(!steps(&decision).iter().any(|s| s.contains("shrinker")), "{:#?}", steps(&decision));
    assert!(notes(&decision).contains("are written to /dev/mmcblk0p3 (a card"), "{}", notes(&decision));
}

#[test]
fn the_hibernation_area_stays_on() {
    let hibernates = |m: Machine| {
        m.with(|m| {
            let device = Some("sda2".into());
            m.facts.hibernation =
                Some(Hibernation { source: "proc/cmdline".into(), resume: "/dev/sda2".into(), device });
            m.facts.disk_areas[0].hibernation = true;
        })
    };
    let disk = || hibernates(Machine::usual().disk("/dev/sda2", DiskKind::Rotating, -2));
    let zram = disk().backend(BackendChoice::Zram).decide();
    let zswap = disk().decide();
    for decision in [&zram, &zswap, &disk().disk("/dev/mmcblk0p3", DiskKind::WearsOut, 10).decide()] {
        assert!(!steps(decision).iter().any(|s| s.starts_with("swap off")), "{:#?}", steps(decision));
        assert!(notes(decision).contains("hibernates to /dev/sda2 (proc/cmdline)"), "{}", notes(decision));
    }
    assert!(notes(&zram).contains("that area stays unchanged"), "{}", notes(&zram));
    assert!(notes(&zswap).contains("the image must fit beside them"), "{}", notes(&zswap));
}

/// An installer's 1 GB beside 16 GB of RAM is in `conf.d/resume` all the same.
#[test]
fn an_area_that_can_hold_no_image_is_not_called_a_place_to_hibernate_to() {
    let with = |mib| {
        Machine::usual().disk("/dev/sda2", DiskKind::Solid, -2).disk("/dev/sdb2", DiskKind::Solid, -3).with(
            move |m| {
                let (source, resume) = ("proc/cmdline".into(), "/dev/sda2".into());
                m.facts.hibernation = Some(Hibernation { source, resume, device: Some("sda2".into()) });
                m.facts.disk_areas[0].hibernation = true;
                m.facts.areas[0].size = Bytes::mib(mib);
            },
        )
    };
    let too_small = "/dev/sda2 (proc/cmdline) is too small to hibernate to";
    for machine in [with(800), with(800).backend(BackendChoice::Zram)] {
        let notes = notes(&machine.decide());
        assert!(notes.contains(too_small) && !notes.contains("hibernates to"), "{notes}");
    }
    let fits = notes(&with(820).decide());
    assert!(fits.contains("this machine hibernates to /dev/sda2") && !fits.contains("too small"), "{fits}");
    let locked = with(820).with(|m| m.facts.never_swapped = Bytes::mib(2048));
    assert!(notes(&locked.decide()).contains(too_small), "locked memory is part of the image");
    let off = with(800).with(|m| m.facts.disk_areas[0].hibernation = false);
    assert!(
        notes(&off.decide()).contains("this machine hibernates to"),
        "an area that is not on has no known size"
    );
}
