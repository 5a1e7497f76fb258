//! A machine for a test: facts, measurement and overrides as literals.

use std::fmt::Write as _;

use eke_model::config::{BackendChoice, ExistingChoice, Settings};
use eke_model::sample::{SwapArea, ZramStat};
use eke_model::step::{Step, ZramSpec};
use eke_model::units::{Bytes, Nanos};
use eke_swap::decide::{Decision, Overrides, decide};
use eke_swap::facts::{DiskArea, DiskKind, Facts, Manager, Missing, ZramFacts, ZramFeatures, ZswapFacts};
use eke_swap::measure::measurements::{AlgorithmMeasurement, DiskLatency, Measured, PageCounts};

#[derive(Debug, Clone)]
pub struct Machine {
    pub facts: Facts,
    pub measured: Measured,
    pub overrides: Overrides,
}

/// A name, a change, and a part of the resulting text.
pub type Case = (&'static str, fn(&mut Machine), &'static str);

/// Ratio, then median store, median load and load p99 in microseconds.
pub fn row(name: &str, ratio: f64, store_us: f64, load_us: f64, p99_us: f64) -> AlgorithmMeasurement {
    let ns = |us: f64| Nanos((us * 1000.0) as u64);
    AlgorithmMeasurement {
        name: name.into(),
        in_zram: true,
        in_zswap: true,
        ratio,
        ratio_low: ratio * 0.9,
        ratio_high: ratio * 1.1,
        incompressible_share: 0.02,
        pages: 4096,
        store_p50: ns(store_us),
        store_p99: ns(store_us * 3.0),
        load_p50: ns(load_us),
        load_p99: ns(p99_us),
        ..AlgorithmMeasurement::default()
    }
}

/// As [`row`], but offered by zswap alone, so estimated.
pub fn estimated(name: &str, ratio: f64, store_us: f64, load_us: f64, p99_us: f64) -> AlgorithmMeasurement {
    AlgorithmMeasurement { in_zram: false, estimated: true, ..row(name, ratio, store_us, load_us, p99_us) }
}

/// Random reads of this many microseconds.
pub fn reads(what: &str, p50_us: u64) -> DiskLatency {
    let p50 = Nanos::micros(p50_us);
    DiskLatency {
        what: what.into(),
        reads: 200,
        p50,
        p99: Nanos(p50.0 * 3),
        direct: true,
        ..DiskLatency::default()
    }
}

/// zswap with the kernel's defaults, off.
pub fn zswap_off() -> ZswapFacts {
    ZswapFacts {
        enabled: false,
        compressor: "lzo".into(),
        max_pool_percent: Some(20),
        accept_threshold_percent: Some(90),
        shrinker: Some(false),
        zpool: None,
        compressors: vec!["lzo".into(), "deflate".into()],
        hardware: Vec::new(),
    }
}

impl Machine {
    /// Two CPUs, a current kernel with zram and zswap, no swap at all; lzo-rle, lz4 and zstd as on a desktop.
    pub fn new(ram: Bytes) -> Self {
        let features = ZramFeatures {
            algorithms: vec!["lzo-rle".into(), "lz4".into(), "zstd".into()],
            ..Default::default()
        };
        let facts = Facts {
            ram,
            available: ram.scaled(0.5),
            cpus: 2,
            zram: ZramFacts { control: true, features: Some(features.clone()), ..ZramFacts::default() },
            zswap: Some(zswap_off()),
            swappiness: Some(60),
            page_cluster: Some(3),
            lru_gen: Some(true),
            min_ttl_ms: Some(1000),
            is_root: true,
            ..Facts::default()
        };
        let measured = Measured {
            kernel: "6.12.0".into(),
            pages: PageCounts { sampled: 8192, zero: 400, processes: 40, ..PageCounts::default() },
            algorithms: vec![
                row("lzo-rle", 2.74, 3.0, 2.2, 6.3),
                row("lz4", 2.63, 2.4, 1.7, 3.6),
                row("zstd", 3.37, 12.0, 5.7, 13.1),
            ],
            zram_features: Some(features),
            file_read: Some(reads("/usr", 90)),
            ..Measured::default()
        };
        let overrides =
            Overrides { settings: Settings::from_sources(&[]).unwrap().swap, ..Overrides::default() };
        Self { facts, measured, overrides }
    }

    /// The same with 2 GiB.
    pub fn usual() -> Self {
        Self::new(Bytes::mib(2048))
    }

    /// Swap on a disk, measured if it is the first: 100 µs, or 10 ms if it seeks.
    pub fn disk(mut self, path: &str, kind: DiskKind, priority: i32) -> Self {
        self.area(path, Bytes::mib(4096), priority);
        let device =
            path.strip_prefix("/dev/").map(|n| n.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned());
        self.facts.disk_areas.push(DiskArea { path: path.into(), device, kind, ..DiskArea::default() });
        self.measured
            .swap_disk
            .get_or_insert_with(|| reads(path, if kind == DiskKind::Rotating { 10_000 } else { 100 }));
        self
    }

    /// Another program's zram swap, with lzo-rle.
    pub fn zram(mut self, name: &str, size: Bytes, priority: i32) -> Self {
        self.area(&format!("/dev/{name}"), size, priority);
        self.facts.zram_in_use.push(ZramStat {
            name: name.into(),
            disksize: size,
            algorithm: "lzo-rle".into(),
            ..ZramStat::default()
        });
        self
    }

    fn area(&mut self, path: &str, size: Bytes, priority: i32) {
        let kind = if path.starts_with("/dev/") { "partition" } else { "file" };
        self.facts.areas.push(SwapArea {
            path: path.into(),
            device: path.strip_prefix("/dev/").map(str::to_owned),
            kind: kind.into(),
            size,
            used: Bytes(0),
            priority,
        });
    }

    pub fn manager(mut self, name: &str, file: &str, device: &str) -> Self {
        self.facts.managers.push(Manager {
            name: name.into(),
            found: vec![file.into()],
            active: true,
            devices: vec![device.into()],
        });
        self
    }

    pub fn lacks(mut self, what: &str, why: &str) -> Self {
        self.facts.missing.push(Missing::new(what, why));
        self
    }

    pub fn no_zram(mut self) -> Self {
        self.facts.zram = ZramFacts::default();
        self.measured.zram_features = None;
        self.lacks("zram", "no CONFIG_ZRAM")
    }

    pub fn no_zswap(mut self) -> Self {
        self.facts.zswap = None;
        self.lacks("zswap", "no CONFIG_ZSWAP")
    }

    pub fn zswap_on(mut self) -> Self {
        self.facts.zswap.as_mut().unwrap().enabled = true;
        self
    }

    pub fn backend(mut self, backend: BackendChoice) -> Self {
        self.overrides.settings.backend = backend;
        self
    }

    pub fn existing(mut self, existing: ExistingChoice) -> Self {
        self.overrides.settings.existing = existing;
        self
    }

    /// Any other change.
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub fn decide(&self) -> Decision {
        decide(&self.facts, &self.measured, &self.overrides).unwrap()
    }

    pub fn refusal(&self) -> String {
        decide(&self.facts, &self.measured, &self.overrides).unwrap_err().to_string()
    }
}

/// The printed steps, in order.
pub fn steps(decision: &Decision) -> Vec<String> {
    decision.plan.steps.iter().map(|p| p.step.to_string()).collect()
}

/// The new device.
pub fn device(decision: &Decision) -> Option<&ZramSpec> {
    decision.plan.steps.iter().find_map(|p| match &p.step {
        Step::AddZram(spec) => Some(spec),
        _ => None,
    })
}

/// The new value of a knob.
pub fn value<'a>(decision: &'a Decision, name: &str) -> Option<&'a str> {
    decision.plan.steps.iter().find_map(|p| match &p.step {
        Step::Set { knob, value, target } if knob == name && target.is_empty() => Some(value.as_str()),
        _ => None,
    })
}

/// The reason of the first step with this text.
pub fn reason_of(decision: &Decision, step: &str) -> String {
    let found = decision.plan.steps.iter().find(|p| p.step.to_string().starts_with(step));
    found.unwrap_or_else(|| panic!("no step {step:?} in {:#?}", steps(decision))).reason.text.clone()
}

/// The advice, one line each.
pub fn notes(decision: &Decision) -> String {
    decision.plan.advice.iter().map(|r| format!("{}\n", r.text)).collect()
}

/// The whole decision as text.
pub fn shown(decision: &Decision) -> String {
    let mut out = format!("{}.\n", decision.backend_reason.text);
    for planned in &decision.plan.steps {
        let _ = write!(out, "\n- {}\n  {}.\n", planned.step, planned.reason.text);
    }
    if let Some(p) = &decision.plan.prediction {
        let _ = writeln!(
            out,
            "\nHolds {:.2} times its RAM at {:.2} to 1; a page is back in {} (p99 {}).",
            p.holds_times_ram,
            p.ratio,
            Nanos(p.load_p50_ns),
            Nanos(p.load_p99_ns)
        );
    }
    for advice in &decision.plan.advice {
        let _ = write!(out, "\nNote: {}.\n", advice.text);
    }
    out
}
