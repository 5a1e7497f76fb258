//! What is compared, as it would be arranged; and that nothing of it stays.

#![expect(clippy::unwrap_used, reason = "functions of tests, which fail by it")]

use std::fmt::Write as _;
use std::sync::Arc;

use eke_apply::journal;
use eke_apply::session::Session;
use eke_bench_core::variants::{
    ArrangedMachine, Arrangement, Error, Features, Host, in_box, ours, sizes, table, variations,
};
use eke_model::step::{PlannedStep, Reason, Step};
use eke_model::units::{Bytes, Nanos};
use eke_swap::facts::{Facts, GroupSwappiness, ZramFacts, ZramFeatures};
use eke_swap::measure::{AlgorithmMeasurement, DiskLatency, Measured};
use eke_testkit::fake_kernel::{FakeKernel, Faults};

/// cgroup v1, no swap of its own.
fn host(algorithms: &[&str]) -> Host {
    let features = ZramFeatures {
        algorithms: algorithms.iter().map(|a| (*a).to_owned()).collect(),
        ..ZramFeatures::default()
    };
    let facts = Facts {
        ram: Bytes::mib(24 * 1024),
        cpus: 2,
        zram: ZramFacts { control: true, features: Some(features), ..ZramFacts::default() },
        memory_groups_v1: vec![GroupSwappiness { group: String::new(), swappiness: 60 }],
        swappiness: Some(60),
        page_cluster: Some(3),
        is_root: true,
        ..Facts::default()
    };
    Host { facts, default_algorithm: Some("lzo-rle".into()), merges_pages: true, dictionary: None }
}

/// As six PDFs in a viewer gave on a 2-CPU virtual machine with Linux 6.18; files over a network.
fn documents() -> Measured {
    let row = |name: &str, ratio: f64, low: f64, store_us: u64, load_us: u64| AlgorithmMeasurement {
        name: name.into(),
        in_zram: true,
        ratio,
        ratio_low: low,
        pages: 7045,
        store_p50: Nanos::micros(store_us),
        load_p50: Nanos::micros(load_us),
        load_p99: Nanos::micros(load_us * 3),
        ..AlgorithmMeasurement::default()
    };
    Measured {
        kernel: "6.18.0".into(),
        algorithms: vec![
            row("lzo-rle", 4.34, 3.99, 6, 3),
            row("lzo", 4.44, 4.10, 5, 3),
            row("lz4", 3.96, 3.67, 6, 2),
        ],
        file_read: Some(DiskLatency { p50: Nanos::micros(500), reads: 100, ..DiskLatency::default() }),
        ..Measured::default()
    }
}

fn shown(arrangements: &[Arrangement], notes: &[String]) -> String {
    let mut text = String::new();
    for a in arrangements {
        let _ = writeln!(text, "{} ({:?})\n  {}", a.variant.name, a.variant.role, a.variant.set_up);
        for planned in &a.plan.steps {
            let _ = writeln!(text, "  - {}", planned.step);
        }
        let _ = writeln!(
            text,
            "  swap {}, swappiness {:?}, merge {}\n",
            a.swap, a.swappiness, a.merge_same_pages
        );
    }
    for note in notes {
        let _ = writeln!(text, "Note: {note}");
    }
    text
}

fn everything(budget: Bytes) -> String {
    let host = host(&["lzo-rle", "lzo", "lz4"]);
    let mut all = in_box(budget, &host, &[]).unwrap();
    all.arrangements.push(ours(budget, &host, &documents(), Features::default()).unwrap());
    let (turned, notes) = variations(budget, &host, &documents()).unwrap();
    all.arrangements.extend(turned);
    all.notes.extend(notes);
    shown(&all.arrangements, &all.notes)
}

#[test]
fn the_thin_client() {
    insta::assert_snapshot!(everything(Bytes::mib(124)));
}

#[test]
fn the_laptop() {
    insta::assert_snapshot!(everything(Bytes::mib(384)));
}

#[test]
fn a_machine_of_today() {
    insta::assert_snapshot!(everything(Bytes::mib(4096)));
}

#[test]
fn the_studys_curve() {
    let curve = sizes(&host(&["lzo-rle"]), &table::STUDY_MIB);
    let sizes: Vec<u64> = curve.iter().map(|a| size(a).0 >> 20).collect();
    assert_eq!(sizes, table::STUDY_MIB);
}

fn size(arrangement: &Arrangement) -> Bytes {
    let device = arrangement.plan.steps.iter().find_map(|p| match &p.step {
        Step::AddZram(spec) => Some(spec.disksize),
        _ => None,
    });
    device.unwrap_or_default()
}

/// With documents' pages no formula declares more than eke does, in any box that the experiments use.
#[test]
fn eke_declares_as_much_as_any_peer() {
    for mib in [124, 256, 384, 1024] {
        let host = host(&["lzo-rle", "lzo", "lz4"]);
        let budget = Bytes::mib(mib);
        let eke = size(&ours(budget, &host, &documents(), Features::default()).unwrap());
        for peer in in_box(budget, &host, &[]).unwrap().arrangements {
            assert!(size(&peer) <= eke, "{mib} MiB: {} has {}, eke {eke}", peer.variant.name, size(&peer));
        }
    }
}

#[test]
fn a_kernel_with_zstd_gives_the_tuned_ones_theirs() {
    let all = in_box(Bytes::mib(124), &host(&["lzo-rle", "zstd"]), &[]).unwrap();
    let of = |name: &str| all.arrangements.iter().find(|a| a.variant.name == name);
    let text = &of("Pop!_OS").unwrap().variant.set_up;
    assert!(text.contains("124 MiB (min(ram, 16 GiB)), zstd, swappiness 180, page-cluster 0"), "{text}");
    assert!(of("zram-tools").is_none(), "zramswap stops where it cannot have lz4");
    assert!(all.notes.iter().any(|n| n.starts_with("zram-tools: left out: this kernel's zram lacks lz4")));
}

#[test]
fn a_name_that_is_none_is_refused_with_those_there_are() {
    let error = in_box(Bytes::mib(124), &host(&[]), &["compcache".to_owned()]).unwrap_err().to_string();
    assert!(
        error.starts_with("there is no variant \"compcache\"; there are: nothing, zram-tools,"),
        "{error}"
    );
}

#[test]
fn on_cgroup_v2_swappiness_is_the_machines() {
    let mut host = host(&["lzo-rle", "lz4"]);
    host.facts.memory_groups_v1.clear();
    let tuned = in_box(Bytes::mib(124), &host, &["tuned zram".to_owned()]).unwrap().arrangements.remove(0);
    let eke = ours(Bytes::mib(124), &host, &documents(), Features::default()).unwrap();
    for (arrangement, swappiness) in [(tuned, 180), (eke, 199)] {
        assert_eq!(arrangement.swappiness, None);
        let set = Step::set("vm.swappiness", swappiness);
        assert!(arrangement.plan.steps.iter().any(|p| p.step == set), "{arrangement:?}");
    }
}

/// A machine and everything that can be arranged on it.
fn machine() -> (Arc<FakeKernel>, Vec<Arrangement>) {
    let machine = FakeKernel::new();
    for (file, text) in [("run", "0\n"), ("pages_to_scan", "100\n"), ("sleep_millisecs", "20\n")] {
        machine.put(&format!("sys/kernel/mm/ksm/{file}"), text);
    }
    machine.put("sys/module/zswap/parameters/enabled", "Y\n");
    let host = Host::of(&machine.root()).unwrap();
    let (budget, mut measured) = (Bytes::mib(124), documents());
    measured.algorithms.retain(|a| host.facts.zram.features.as_ref().unwrap().algorithms.contains(&a.name));
    let mut all = in_box(budget, &host, &[]).unwrap().arrangements;
    all.push(ours(budget, &host, &measured, Features::default()).unwrap());
    all.extend(variations(budget, &host, &measured).unwrap().0);
    (machine, all)
}

#[test]
fn every_arrangement_is_taken_away_again() {
    let (machine, all) = machine();
    let before = machine.tree();
    assert!(all.len() > 10, "{}", all.len());
    for arrangement in &all {
        let ground = ArrangedMachine::prepare(&machine.root()).unwrap();
        ground.apply(arrangement).unwrap();
        let name = &arrangement.variant.name;
        assert_eq!(machine.tree() == before, arrangement.plan.steps.is_empty(), "{name}");
        drop(ground);
        assert_eq!(machine.tree(), before, "{name}");
        assert_eq!(journal::entries(&machine.root()).unwrap(), []);
    }
}

#[test]
fn one_takes_the_others_place() {
    let (machine, all) = machine();
    let before = machine.tree();
    let ground = ArrangedMachine::prepare(&machine.root()).unwrap();
    for arrangement in &all {
        ground.apply(arrangement).unwrap();
        let swaps = machine.root().read("proc/swaps").unwrap();
        assert_eq!(swaps.lines().count() - 1, usize::from(arrangement.swap), "{swaps}");
    }
    ground.restore().unwrap();
    assert_eq!(machine.tree(), before);
}

#[test]
fn what_a_dead_experiment_left_is_gone_at_the_next() {
    let mut whole = 0;
    for effects in 0..40 {
        let (machine, all) = machine();
        let before = machine.tree();
        machine.set_faults(Faults { crash_after: Some(effects), ..Faults::default() });
        if let Ok(ground) = ArrangedMachine::prepare(&machine.root()) {
            let merging = all.iter().find(|a| a.merge_same_pages).unwrap();
            whole += u32::from(ground.apply(merging).is_ok());
            // Dead: it undoes nothing.
            std::mem::forget(ground);
        }
        machine.set_faults(Faults::default());
        ArrangedMachine::prepare(&machine.root()).unwrap();
        assert_eq!(machine.tree(), before, "after {effects} effects");
    }
    assert!((1..40).contains(&whole), "some were cut off and some were not: {whole}");
}

#[test]
fn a_living_eke_is_waited_for_and_one_that_is_up_is_refused() {
    let (machine, _) = machine();
    let root = machine.root();
    let reason = Reason::new("for the test");
    let step = PlannedStep { step: Step::set("vm.swappiness", 180), reason };
    Session::open(&root, "swap").unwrap().apply(&step).unwrap();
    machine.put("run/eke/applied.json", "{}");
    let error = ArrangedMachine::prepare(&root).unwrap_err();
    assert!(matches!(error, Error::EkeIsUp) && error.to_string().contains("`eke down` first"), "{error}");
}

#[test]
fn without_a_files_cost_the_box_has_the_kernels_swappiness() {
    let (host, mut measured) = (host(&["lzo-rle", "lzo", "lz4"]), documents());
    measured.file_read = None;
    let eke = ours(Bytes::mib(124), &host, &measured, Features::default()).unwrap();
    assert_eq!(eke.swappiness, Some(60));
    let notes = variations(Bytes::mib(124), &host, &measured).unwrap().1;
    assert_eq!(notes, ["eke: swappiness 60: left out, it is what eke chooses here by itself"]);
}

#[test]
fn pages_that_do_not_compress_get_no_device_and_no_swap() {
    let (host, mut measured) = (host(&["lzo-rle", "lzo", "lz4"]), documents());
    measured.algorithms.iter_mut().for_each(|a| (a.ratio, a.ratio_low) = (1.02, 0.98));
    let eke = ours(Bytes::mib(124), &host, &measured, Features::default()).unwrap();
    assert_eq!((eke.swap, eke.swappiness, eke.plan.steps.len()), (false, None, 0));
    assert!(eke.variant.set_up.contains("hardly compress"), "{}", eke.variant.set_up);
}

#[test]
fn the_machines_own_swap_is_below_and_named() {
    let mut host = host(&["lzo-rle", "lz4"]);
    let area = eke_model::sample::SwapArea {
        path: "/dev/sda2".into(),
        size: Bytes::mib(2048),
        priority: 200,
        ..eke_model::sample::SwapArea::default()
    };
    host.facts.areas.push(area);
    let fedora = in_box(Bytes::mib(124), &host, &["Fedora".to_owned()]).unwrap();
    let eke = ours(Bytes::mib(124), &host, &documents(), Features::default()).unwrap();
    for arrangement in [&fedora.arrangements[0], &eke] {
        let above =
            |p: &PlannedStep| matches!(&p.step, Step::AddZram(spec) if spec.swap_priority == Some(201));
        assert!(arrangement.plan.steps.iter().any(above), "{arrangement:?}");
    }
    assert!(
        fedora.notes[0].starts_with("this machine has other swap, /dev/sda2 (2.0 GiB)"),
        "{:?}",
        fedora.notes
    );
}
