//! What runs come to. Pure.

use std::collections::BTreeSet;

use eke_model::units::Bytes;
use eke_statistics::bootstrap::{self, Difference};
use eke_statistics::mean;
use serde::{Deserialize, Serialize};

use crate::class::Class;
use crate::figures::{Device, Latency};

/// A comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcome {
    /// The setting.
    pub knob: String,
    /// The disk whose latencies these are.
    pub device: String,
    /// Where the figures are from.
    pub source: String,
    /// What was missing while it was measured.
    pub missing: Vec<String>,
    /// A side for each value.
    pub sides: Vec<Side>,
    /// What differs of each side from the first.
    pub differences: Vec<Differs>,
}

/// All runs at one value.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Side {
    /// The value.
    pub value: String,
    /// All runs as one, by class.
    pub all: Device,
    /// Each run by itself.
    pub runs: Vec<Run>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// How long the load took, in seconds.
    pub seconds: f64,
    /// What the disk did meanwhile.
    pub device: Device,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// The average latency, in nanoseconds.
    Mean,
    /// The median, in nanoseconds.
    P50,
    /// 99 of 100 are below, in nanoseconds.
    P99,
    /// 999 of 1000 are below, in nanoseconds.
    P999,
    /// Requests a second.
    PerSecond,
    /// Bytes a second.
    BytesPerSecond,
}

impl Figure {
    /// All, in the order of tables.
    pub const ALL: [Self; 6] =
        [Self::Mean, Self::P50, Self::P99, Self::P999, Self::PerSecond, Self::BytesPerSecond];

    /// As in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "average",
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::PerSecond => "a second",
            Self::BytesPerSecond => "bytes/s",
        }
    }

    /// Is it a time?
    pub fn is_time(self) -> bool {
        !matches!(self, Self::PerSecond | Self::BytesPerSecond)
    }

    /// Of a run's class.
    pub fn of(self, latency: &Latency, seconds: f64) -> Option<f64> {
        let seconds = seconds.max(1e-9);
        match self {
            Self::Mean => latency.whole.mean_ns(),
            Self::P50 => latency.whole.quantile_ns(0.5),
            Self::P99 => latency.whole.quantile_ns(0.99),
            Self::P999 => latency.whole.quantile_ns(0.999),
            Self::PerSecond => Some(latency.whole.count as f64 / seconds),
            Self::BytesPerSecond => (latency.bytes > Bytes(0)).then(|| latency.bytes.0 as f64 / seconds),
        }
    }
}

/// A figure that differs, or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Differs {
    /// Between the first value and this one.
    pub value: String,
    /// Of which class.
    #[serde(flatten)]
    pub class: Class,
    /// Which figure.
    pub figure: Figure,
    /// Its mean over the runs at the first value.
    pub a: f64,
    /// Its mean over the runs at this one.
    pub b: f64,
    /// The difference with its confidence interval.
    #[serde(flatten)]
    pub difference: Difference,
}

impl Side {
    /// Without runs yet.
    pub fn new(value: &str) -> Self {
        Self { value: value.to_owned(), ..Self::default() }
    }

    /// Adds a run.
    pub fn add(&mut self, seconds: f64, device: Device) {
        self.all.name.clone_from(&device.name);
        self.all.merge(&device);
        self.runs.push(Run { seconds, device });
    }

    /// A figure of a class in each run; `None` of a run that had none of that class.
    pub fn samples(&self, class: Class, figure: Figure) -> Vec<Option<f64>> {
        let of = |run: &Run| {
            let figures = run.device.classes.iter().find(|f| f.class == class)?;
            figure.of(&figures.latency, run.seconds)
        };
        self.runs.iter().map(of).collect()
    }

    /// A figure of a class as the mean over the runs that had that class.
    pub fn mean(&self, class: Class, figure: Figure) -> Option<f64> {
        let samples: Vec<f64> = self.samples(class, figure).into_iter().flatten().collect();
        mean(&samples)
    }
}

/// The classes that any side has.
pub fn classes(sides: &[Side]) -> BTreeSet<Class> {
    sides.iter().flat_map(|side| &side.all.classes).map(|figures| figures.class).collect()
}

/// What differs of each side from the first, in each class and figure that both have.
pub fn differences(sides: &[Side], seed: u64) -> Vec<Differs> {
    let Some((first, others)) = sides.split_first() else { return Vec::new() };
    let mut all = Vec::new();
    for other in others {
        for class in classes(sides) {
            all.extend(Figure::ALL.iter().filter_map(|figure| differs(first, other, class, *figure, seed)));
        }
    }
    all
}

fn differs(a: &Side, b: &Side, class: Class, figure: Figure, seed: u64) -> Option<Differs> {
    let pairs = a.samples(class, figure).into_iter().zip(b.samples(class, figure));
    let pairs: Vec<(f64, f64)> = pairs.filter_map(|(a, b)| Some((a?, b?))).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64;
    let difference = bootstrap::difference(&pairs, seed)?;
    Some(Differs { value: b.value.clone(), class, figure, a: mean(|p| p.0), b: mean(|p| p.1), difference })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::{Mode, Operation};
    use crate::figures::Figures;

    const READ: Class = Class::new(Operation::Read, Mode::Sync);
    const FLUSH: Class = Class::new(Operation::Flush, Mode::Sync);

    fn device(class: Class, ns: u64, count: u64) -> Device {
        let mut latency = Latency { bytes: Bytes(4096 * count), ..Latency::default() };
        (0..count).for_each(|_| latency.whole.record(ns));
        Device { name: "sda".into(), classes: vec![Figures { class, latency }], ..Device::default() }
    }

    #[test]
    fn what_helps_one_class_and_hurts_another_is_seen_in_both() {
        let mut sides = [Side::new("10"), Side::new("3")];
        for i in 0..5 {
            let mut a = device(READ, 7_700_000 + i * 1_000, 100);
            a.merge(&device(FLUSH, 42_700_000, 10));
            let mut b = device(READ, 14_300_000 - i * 1_000, 100);
            b.merge(&device(FLUSH, 25_100_000, 10));
            sides[0].add(2.0, a);
            sides[1].add(2.0, b);
        }
        let all = differences(&sides, 1);
        let of = |class, figure| all.iter().find(|d| d.class == class && d.figure == figure).unwrap();
        let read = of(READ, Figure::Mean);
        assert!(read.difference.is_clear() && read.difference.mean > 6e6, "{read:?}");
        let flush = of(FLUSH, Figure::Mean);
        assert!(flush.difference.high < -17e6, "{flush:?}");
        let rate = of(READ, Figure::PerSecond);
        assert_eq!((rate.a, rate.b, rate.difference.is_clear()), (50.0, 50.0, false));
        assert_eq!(sides[0].all.awaited_reads().whole.count, 500);
        assert_eq!(all.iter().filter(|d| d.class == FLUSH).count(), 6);
    }

    #[test]
    fn a_class_that_one_side_lacks_has_no_difference() {
        let mut sides = [Side::new("a"), Side::new("b")];
        sides[0].add(1.0, device(READ, 10, 1));
        sides[1].add(1.0, device(FLUSH, 10, 1));
        assert!(differences(&sides, 1).is_empty());
        assert!(differences(&[], 1).is_empty());
        assert_eq!(
            (sides[0].mean(READ, Figure::Mean), sides[1].mean(READ, Figure::Mean)),
            (Some(10.0), None)
        );
    }
}
