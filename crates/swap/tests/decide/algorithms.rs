//! The algorithm, its size, and whether it pays.

use eke_model::config::BackendChoice;
use eke_model::units::{Bytes, Nanos};
use eke_swap::decide::algorithm::AlgorithmVerdict;
use eke_swap::decide::backend::Backend;
use eke_swap::facts::{DiskKind, Hardware, Missing};
use eke_swap::measure::{AlgorithmMeasurement, Dictionary};

use crate::machine::{Machine, device, estimated, reason_of, row, steps, value};

const NEW: &str = "swap on a new zram device";

fn ssd() -> Machine {
    Machine::usual().disk("/dev/sda2", DiskKind::Solid, -2)
}

fn requesting(name: &str) -> Machine {
    Machine::usual().with(|m| m.overrides.settings.algorithm = name.into())
}

#[test]
fn an_estimate_may_win_and_is_marked() {
    let deflate = |p99_us| {
        ssd().with(|m| m.measured.algorithms.push(estimated("deflate", 3.9, 40.0, 14.0, p99_us))).decide()
    };
    let wins = deflate(60.0);
    assert_eq!(value(&wins, "zswap.compressor"), Some("deflate"));
    let reason = reason_of(&wins, "set zswap.compressor");
    assert!(reason.starts_with("deflate frees most within the budgets"), "{reason}");
    assert!(reason.ends_with("all estimated in user space"), "{reason}");
    let too_slow = deflate(300.0);
    assert_eq!(value(&too_slow, "zswap.compressor"), Some("zstd"));
    assert_eq!(too_slow.choice.unwrap().verdicts[3], AlgorithmVerdict::TooSlowToLoad);
}

/// Its library was measured on the CPU; or zram's own was, which stays on the CPU.
#[test]
fn the_plan_says_what_compresses_in_hardware() {
    let iaa = || Hardware {
        algorithm: "deflate".into(),
        driver: "deflate-iaa".into(),
        module: "iaa_crypto".into(),
        priority: 300,
    };
    let deflate = |row: AlgorithmMeasurement| {
        let machine = ssd().with(|m| {
            m.facts.zswap.as_mut().unwrap().hardware.push(iaa());
            m.measured.algorithms.push(row);
        });
        let decision = machine.decide();
        assert_eq!(value(&decision, "zswap.compressor"), Some("deflate"));
        reason_of(&decision, "set zswap.compressor")
    };
    let by_hardware = AlgorithmMeasurement {
        hardware: Some("iaa_crypto".into()),
        ..estimated("deflate", 3.9, 40.0, 14.0, 60.0)
    };
    let reason = deflate(by_hardware);
    assert!(reason.starts_with("deflate (by iaa_crypto, hardware) frees most"), "{reason}");
    assert!(reason.ends_with("estimated in user space on the CPU, which the hardware relieves"), "{reason}");
    let reason = deflate(AlgorithmMeasurement { in_zswap: true, ..row("deflate", 3.9, 40.0, 14.0, 60.0) });
    assert!(reason.ends_with("and zswap has iaa_crypto compress, hardware"), "{reason}");
}

/// 10 µs of the CPU's and 90 µs of waiting: too slow for a load within 50 µs, and little CPU.
#[test]
fn hardware_costs_its_latency_and_the_cpus_own_time() {
    let by_hardware = |load_p99_us| {
        let machine = Machine::usual().with(|m| {
            m.measured.algorithms.push(AlgorithmMeasurement {
                hardware: Some("nx_compress".into()),
                cpu_per_page: Some(Nanos::micros(10)),
                ..row("842", 3.9, 400.0, 400.0, 90.0)
            });
            m.overrides.settings.load_p99_us = Some(load_p99_us);
        });
        machine.decide().choice.unwrap().verdicts[3]
    };
    assert_eq!(by_hardware(100), AlgorithmVerdict::Chosen, "800 us of CPU would be too much");
    assert_eq!(by_hardware(50), AlgorithmVerdict::TooSlowToLoad);
}

/// The kernel takes both in one line.
#[test]
fn a_level_and_a_dictionary_are_chosen_together() {
    let machine = Machine::usual().with(|m| {
        let zstd = m.measured.algorithms[2].clone();
        let with = |dictionary, ratio| AlgorithmMeasurement {
            params: Some("level=8".into()),
            dictionary,
            ratio,
            ..zstd.clone()
        };
        m.measured.algorithms.extend([with(false, 3.5), with(true, 3.98)]);
        m.measured.dictionary = Some(Dictionary::of(b"words").unwrap());
    });
    let decision = machine.decide();
    let spec = device(&decision).unwrap();
    let dictionary = machine.measured.dictionary.as_ref().map(Dictionary::path);
    assert_eq!((spec.algorithm.as_str(), spec.params.as_deref()), ("zstd", Some("level=8")));
    assert_eq!(spec.dictionary, dictionary);
    assert!(reason_of(&decision, NEW).starts_with("zstd (level=8, dictionary) frees most"));
}

#[test]
fn a_requested_algorithm_is_called_so() {
    let reason = |m: Machine| reason_of(&m.decide(), NEW);
    let within = reason(requesting("lzo-rle"));
    assert!(within.starts_with("lzo-rle was requested and is within the budgets"), "{within}");
    let over = reason(requesting("zstd").with(|m| m.overrides.settings.load_p99_us = Some(5)));
    assert!(over.starts_with("zstd was requested and is over the budgets"), "{over}");
}

#[test]
fn an_unoffered_or_unmeasured_algorithm_is_refused() {
    assert!(requesting("brotli").refusal().ends_with("it offers: lzo-rle, lz4, zstd"));
    let no_library =
        requesting("842").with(|m| m.measured.unmeasured.push(Missing::new("842", "no library for it")));
    assert_eq!(no_library.refusal(), "algorithm = \"842\" could not be measured: no library for it");
}

#[test]
fn the_faster_of_two_alike_names_the_best_ratio() {
    let machine = Machine::usual().with(|m| m.measured.algorithms[1].ratio = 3.33);
    let reason = reason_of(&machine.decide(), NEW);
    assert!(reason.starts_with("lz4 is the fastest of those that free nearly the most within"), "{reason}");
    assert!(reason.contains("whose best ratio is 3.37"), "{reason}");
}

#[test]
fn a_machine_whose_pages_do_not_compress_is_left_alone() {
    let hard = |machine: Machine| {
        machine.with(|m| m.measured.algorithms.iter_mut().for_each(|r| (r.ratio, r.ratio_low) = (1.02, 0.98)))
    };
    for machine in [hard(Machine::usual()), hard(ssd()), hard(Machine::usual()).zswap_on()] {
        let decision = machine.decide();
        assert_eq!((&decision.backend, decision.plan.steps.len()), (&Backend::Nothing, 0));
        let text = &decision.backend_reason.text;
        assert!(
            text.starts_with("nothing is set up: this machine's pages hardly compress (lz4 reaches 1.02"),
            "{text}"
        );
    }
    let asked = hard(Machine::usual()).backend(BackendChoice::Zram).decide();
    assert_eq!(device(&asked).unwrap().disksize, Bytes::mib(1632), "four fifths of the RAM at 1 to 1");
}

#[test]
fn the_second_algorithm_for_idle_pages_has_a_higher_measured_ratio() {
    let light = |change: fn(&mut Machine)| {
        let machine =
            requesting("lz4").with(|m| m.measured.zram_features.as_mut().unwrap().recompression = true);
        device(&machine.with(change).decide()).unwrap().recompress_with.clone()
    };
    assert_eq!(light(|_| {}).as_deref(), Some("zstd"));
    assert_eq!(
        light(|m| m.measured.algorithms[2].unusable = Some("refused".into())),
        None,
        "lzo-rle is no stronger"
    );
    assert_eq!(light(|m| m.overrides.settings.recompress = false), None);
    assert_eq!(light(|m| m.measured.zram_features.as_mut().unwrap().recompression = false), None);
    let strong = requesting("zstd").with(|m| m.measured.zram_features.as_mut().unwrap().recompression = true);
    assert_eq!(device(&strong.decide()).unwrap().recompress_with, None);
}

#[test]
fn few_pages_are_not_trusted() {
    let few = |pages: u64, ratio: f64| {
        Machine::usual().with(|m| {
            m.measured.algorithms = vec![{
                let mut r = row("lz4", ratio, 2.0, 1.0, 4.0);
                r.pages = pages;
                r
            }]
        })
    };
    for ratio in [1.0, 9.0] {
        let decision = few(40, ratio).decide();
        let reason = reason_of(&decision, NEW);
        assert!(reason.ends_with("(40 pages were measured, too few to trust their ratio)"), "{reason}");
        assert!(decision.plan.prediction.unwrap().ratio <= 2.0);
    }
    assert!(!reason_of(&few(300, 9.0).decide(), NEW).contains("too few"));
}

#[test]
fn the_share_of_ram_is_the_requested_one() {
    for (percent, disksize) in [(10, 613), (50, 3069), (90, 4096)] {
        let decision = Machine::usual().with(|m| m.overrides.settings.pool_percent = percent).decide();
        let requested = device(&decision).unwrap().disksize;
        assert_eq!(requested, Bytes::mib(disksize), "{percent}");
    }
    let most = Machine::usual().with(|m| m.overrides.settings.pool_percent = 90).decide();
    assert!(
        reason_of(&most, NEW)
            .contains("the size is capped at twice the RAM, and a full device takes about 67 %")
    );
}

#[test]
fn a_requested_size_is_zrams() {
    let of = |m: Machine, mib| m.with(|m| m.overrides.size = Some(Bytes::mib(mib)));
    assert_eq!(device(&of(Machine::usual(), 64).decide()).unwrap().disksize, Bytes::mib(64));
    assert!(of(Machine::usual(), 90_000).refusal().contains("at most"));
    assert!(of(Machine::usual(), 0).refusal().contains("less than the largest page"));
    let zswap = of(ssd(), 64).refusal();
    assert!(zswap.contains("a size of 64 MiB is for zram") && zswap.contains("--pool-percent"), "{zswap}");
}

#[test]
fn estimates_alone_still_make_a_plan() {
    let machine = Machine::usual().with(|m| {
        m.facts.is_root = false;
        m.measured.estimated = true;
        m.measured.algorithms.iter_mut().for_each(|r| r.estimated = true);
    });
    let decision = machine.decide();
    assert!(
        reason_of(&decision, NEW)
            .contains("all estimated in user space; the size is capped at twice the RAM, and a full device")
    );
    assert!(steps(&decision).len() == 3);
}
