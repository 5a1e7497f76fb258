//! Properties of any machine.

use eke_model::config::{BackendChoice, ExistingChoice};
use eke_model::step::Step;
use eke_model::units::{Bytes, Nanos};
use eke_swap::decide::{Decision, decide};
use eke_swap::facts::{DiskKind, GroupSwappiness, WritebackDevice, ZswapFacts};
use eke_swap::measure::measurements::{AlgorithmMeasurement, DiskLatency};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;

use crate::machine::{Machine, device, reads};

const NAMES: [&str; 5] = ["lzo-rle", "lz4", "zstd", "deflate", "842"];

fn algorithm() -> impl Strategy<Value = AlgorithmMeasurement> {
    let offered = (any::<bool>(), any::<bool>(), any::<bool>());
    let times = [0..u64::MAX, 0..200_000, 0..200_000, 0..u64::MAX];
    (
        select(&NAMES[..]),
        offered,
        prop_oneof![Just(0.0), 0.5f64..20.0],
        0.1f64..1.0,
        times,
        of("no"),
        0u64..9000,
    )
        .prop_map(|(name, (in_zram, in_zswap, estimated), ratio, low, times, unusable, pages)| {
            AlgorithmMeasurement {
                name: name.into(),
                in_zram,
                in_zswap,
                estimated,
                ratio,
                ratio_low: ratio * low,
                store_p50: Nanos(times[0]),
                load_p50: Nanos(times[1]),
                load_p99: Nanos(times[2]),
                store_p99: Nanos(times[3]),
                unusable,
                pages,
                ..AlgorithmMeasurement::default()
            }
        })
}

fn zswap() -> impl Strategy<Value = ZswapFacts> {
    let numbers = (of(0u32..=100), of(0u32..=100), of(any::<bool>()));
    (any::<bool>(), select(&NAMES[..]), numbers, of(select(&["zbud", "zsmalloc"][..]))).prop_map(
        |(enabled, compressor, (max_pool_percent, accept_threshold_percent, shrinker), zpool)| ZswapFacts {
            enabled,
            compressor: compressor.into(),
            max_pool_percent,
            accept_threshold_percent,
            shrinker,
            zpool: zpool.map(str::to_owned),
            compressors: Vec::new(),
            hardware: Vec::new(),
        },
    )
}

fn kind() -> impl Strategy<Value = DiskKind> {
    use DiskKind::{Network, Rotating, Solid, Unknown, WearsOut};
    select(&[Rotating, Solid, WearsOut, Network, Unknown][..])
}

/// Areas on disks, then zram devices.
fn areas() -> impl Strategy<Value = Machine> {
    let disks = prop::collection::vec((kind(), any::<i32>(), any::<u64>()), 0..4);
    let zrams = prop::collection::vec((any::<u64>(), any::<i32>()), 0..3);
    (any::<u64>(), disks, zrams).prop_map(|(ram, disks, zrams)| {
        let mut machine = Machine::new(Bytes(ram >> (ram % 40)));
        for (i, (kind, priority, size)) in disks.into_iter().enumerate() {
            machine = machine.disk(&format!("/dev/sd{}1", char::from(b'a' + i as u8)), kind, priority);
            machine.facts.areas[i].size = Bytes(size);
        }
        for (i, (size, priority)) in zrams.into_iter().enumerate() {
            machine = machine.zram(&format!("zram{i}"), Bytes(size), priority);
        }
        machine
    })
}

fn requested(machine: Machine) -> impl Strategy<Value = Machine> {
    let backend = select(&[BackendChoice::Auto, BackendChoice::Zram, BackendChoice::Zswap][..]);
    let existing = select(&[ExistingChoice::Adopt, ExistingChoice::Replace, ExistingChoice::Leave][..]);
    let size = prop_oneof![4 => Just(None), 1 => of(any::<u64>().prop_map(Bytes))];
    let name = prop_oneof![3 => Just("auto"), 1 => select(&NAMES[..])];
    let budgets = (10u32..=90, of(1u32..=100_000), of(1u32..=1_000_000), 1u32..=100);
    (backend, existing, size, name, budgets, select(&["", "/dev/sdb1", "/dev/sdz9", "/x"][..])).prop_map(
        move |(backend, existing, size, name, (pool, load, pages, cpu), device)| {
            machine.clone().backend(backend).existing(existing).with(|m| {
                m.overrides.size = size;
                m.facts.writeback = device.strip_prefix("/dev/").map(|name| WritebackDevice {
                    path: device.into(),
                    name: name.into(),
                    ..WritebackDevice::default()
                });
                let s = &mut m.overrides.settings;
                (s.algorithm, s.writeback_device) = (name.into(), device.into());
                (s.pool_percent, s.load_p99_us, s.pages_per_second, s.cpu_percent) = (pool, load, pages, cpu);
            })
        },
    )
}

fn machine() -> impl Strategy<Value = Machine> {
    let kernel = (any::<bool>(), any::<bool>(), of(zswap()), select(&["", "4.19.1", "6.12.0"][..]));
    let disks = (of(any::<u64>()), of(any::<u64>()), any::<usize>(), of(Just("sda")), any::<u64>());
    let knobs = (of(0u32..=200), of(0u32..=10), prop::collection::vec(0u32..=200, 0..3), of(any::<bool>()));
    let algorithms = prop::collection::vec(algorithm(), 0..6);
    (areas().prop_flat_map(requested), kernel, disks, knobs, algorithms).prop_map(
        |(
            machine,
            (control, features, zswap, kernel),
            (swap, file, cpus, files_on, locked),
            knobs,
            algorithms,
        )| {
            machine.with(|m| {
                (m.facts.zram.control, m.facts.zswap, m.facts.cpus) = (control, zswap, cpus);
                m.measured.zram_features.as_mut().unwrap().recompression = features;
                m.measured.zram_features.as_mut().unwrap().writeback = features;
                m.measured.kernel = kernel.into();
                m.measured.algorithms = algorithms;
                let path = m.facts.disk_areas.first().map_or(String::new(), |a| a.path.clone());
                m.measured.swap_disk = swap.map(|us| reads(&path, us >> 32));
                let device = files_on.map(str::to_owned);
                m.measured.file_read = file.map(|us| DiskLatency { device, ..reads("/usr", us >> 32) });
                m.facts.never_swapped = Bytes(locked >> (locked % 64));
                (m.facts.swappiness, m.facts.page_cluster, m.facts.lru_gen) = (knobs.0, knobs.1, knobs.3);
                m.overrides.settings.lru_gen = true;
                let group = |(i, swappiness)| GroupSwappiness { group: format!("g{i}"), swappiness };
                m.facts.memory_groups_v1 = knobs.2.into_iter().enumerate().map(group).collect();
            })
        },
    )
}

fn settings<'a>(decision: &'a Decision, name: &'a str) -> impl Iterator<Item = &'a str> {
    decision.plan.steps.iter().filter_map(move |p| match &p.step {
        Step::Set { knob, value, .. } if knob == name => Some(value.as_str()),
        _ => None,
    })
}

fn number(value: &str) -> u32 {
    value.parse().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn one_back_end_within_its_share(machine in machine()) {
        let Ok(decision) = decide(&machine.facts, &machine.measured, &machine.overrides) else { return Ok(()) };
        let percent = machine.overrides.settings.pool_percent;
        let zswap_on = settings(&decision, "zswap.enabled").any(|v| v == "Y");
        prop_assert!(!(device(&decision).is_some() && zswap_on), "both");
        for planned in &decision.plan.steps {
            if let Step::SwapOff { path } = &planned.step {
                prop_assert!(path.starts_with("/dev/zram"), "{path}");
                prop_assert_eq!(machine.overrides.settings.existing, ExistingChoice::Replace);
            }
        }
        for value in settings(&decision, "zswap.max_pool_percent") {
            prop_assert!(number(value) <= percent);
        }
        if let Some(spec) = device(&decision) {
            let ratio = decision.plan.steps.iter().find_map(|p| p.reason.numbers.get("ratio_used")).unwrap();
            let share = spec.disksize.0 as f64 / ratio / machine.facts.ram.0 as f64;
            let most = if machine.overrides.size.is_some() { 90 } else { percent };
            prop_assert!(share <= f64::from(most) / 100.0 + 1e-9, "{share}");
            prop_assert!(spec.disksize.0 >= 4096 && spec.swap_priority >= Some(100));
        }
    }

    #[test]
    fn knobs_stay_within_the_kernels_range(machine in machine()) {
        let Ok(decision) = decide(&machine.facts, &machine.measured, &machine.overrides) else { return Ok(()) };
        let most = if machine.measured.kernel.starts_with('4') { 100 } else { 200 };
        for knob in ["vm.swappiness", "memory.swappiness"] {
            for value in settings(&decision, knob) {
                prop_assert!((1..=most).contains(&number(value)));
            }
        }
        for value in settings(&decision, "zswap.accept_threshold_percent") {
            prop_assert!((50..=99).contains(&number(value)));
        }
        if let Some(p) = &decision.plan.prediction {
            prop_assert!(p.holds_times_ram.is_finite() && p.ratio.is_finite());
        }
    }

    /// An applied plan is not planned again.
    #[test]
    fn settings_that_are_applied_stay(machine in machine()) {
        let Ok(decision) = decide(&machine.facts, &machine.measured, &machine.overrides) else { return Ok(()) };
        prop_assume!(device(&decision).is_none() && !decision.plan.steps.iter().any(|p| matches!(p.step, Step::SwapOff { .. })));
        let applied = machine.with(|m| {
            for planned in &decision.plan.steps {
                apply(m, &planned.step);
            }
        });
        prop_assert_eq!(applied.decide().plan.steps, vec![]);
    }
}

fn apply(machine: &mut Machine, step: &Step) {
    let Step::Set { knob, target, value } = step else { return };
    let facts = &mut machine.facts;
    if knob == "memory.swappiness" {
        let group = facts.memory_groups_v1.iter_mut().find(|g| g.group == *target).unwrap();
        group.swappiness = number(value);
        return;
    }
    match (knob.as_str(), facts.zswap.as_mut()) {
        ("vm.swappiness", _) => facts.swappiness = Some(number(value)),
        ("lru_gen.enabled", _) => facts.lru_gen = Some(true),
        ("vm.page-cluster", _) => facts.page_cluster = Some(number(value)),
        ("zswap.enabled", Some(z)) => z.enabled = value == "Y",
        ("zswap.compressor", Some(z)) => z.compressor.clone_from(value),
        ("zswap.zpool", Some(z)) => z.zpool = Some(value.clone()),
        ("zswap.max_pool_percent", Some(z)) => z.max_pool_percent = Some(number(value)),
        ("zswap.accept_threshold_percent", Some(z)) => z.accept_threshold_percent = Some(number(value)),
        ("zswap.shrinker_enabled", Some(z)) => z.shrinker = Some(value == "Y"),
        _ => panic!("{step}"),
    }
}
