//! The result of a comparison, from its runs. Pure.

use std::collections::BTreeSet;

use eke_model::units::Bytes;
use eke_statistics::bootstrap::{self, Difference};
use eke_statistics::mean;
use serde::{Deserialize, Serialize};

use crate::class::Class;
use crate::counters::{Device, Latency};

/// A comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparisonResult {
    /// The setting.
    pub knob: String,
    /// The disk that was measured.
    pub device: String,
    /// The source of the measurements: `bpf` or `stat`.
    pub source: String,
    /// What is missing or coarser than it could be, each with its reason.
    pub missing: Vec<String>,
    /// A side for each value.
    pub sides: Vec<Side>,
    /// The differences of each other side from the first.
    pub differences: Vec<MetricDifference>,
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
    pub runs: Vec<LoadRun>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadRun {
    /// The run time of the load, in seconds.
    pub seconds: f64,
    /// The disk in that time.
    pub device: Device,
}

/// A number that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunMetric {
    /// The average latency, in nanoseconds.
    Mean,
    /// The median, in nanoseconds.
    P50,
    /// The 99th percentile, in nanoseconds.
    P99,
    /// The 99.9th percentile, in nanoseconds.
    P999,
    /// Requests a second.
    PerSecond,
    /// Bytes a second.
    BytesPerSecond,
}

impl RunMetric {
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

    /// Its value for a class of a run.
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

/// The difference of one metric between two values of the setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MetricDifference {
    /// The second value; the first one is that of the first side.
    pub value: String,
    /// The class of requests.
    #[serde(flatten)]
    pub class: Class,
    /// The metric.
    pub metric: RunMetric,
    /// Its mean over the runs at the first value.
    pub a: f64,
    /// Its mean over the runs at the second value.
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
        self.runs.push(LoadRun { seconds, device });
    }

    /// A metric of a class in each run; `None` for a run without that class.
    pub fn samples(&self, class: Class, metric: RunMetric) -> Vec<Option<f64>> {
        let of = |run: &LoadRun| {
            let found = run.device.classes.iter().find(|f| f.class == class)?;
            metric.of(&found.latency, run.seconds)
        };
        self.runs.iter().map(of).collect()
    }

    /// The mean of a metric over the runs that have that class.
    pub fn mean(&self, class: Class, metric: RunMetric) -> Option<f64> {
        let samples: Vec<f64> = self.samples(class, metric).into_iter().flatten().collect();
        mean(&samples)
    }
}

/// The classes that any side has.
pub fn classes(sides: &[Side]) -> BTreeSet<Class> {
    sides.iter().flat_map(|side| &side.all.classes).map(|found| found.class).collect()
}

/// The differences of each other side from the first, in each class and metric that both have.
pub fn differences(sides: &[Side], seed: u64) -> Vec<MetricDifference> {
    let Some((first, others)) = sides.split_first() else { return Vec::new() };
    let mut all = Vec::new();
    for other in others {
        for class in classes(sides) {
            all.extend(
                RunMetric::ALL.iter().filter_map(|metric| differs(first, other, class, *metric, seed)),
            );
        }
    }
    all
}

fn differs(a: &Side, b: &Side, class: Class, metric: RunMetric, seed: u64) -> Option<MetricDifference> {
    let pairs = a.samples(class, metric).into_iter().zip(b.samples(class, metric));
    let pairs: Vec<(f64, f64)> = pairs.filter_map(|(a, b)| Some((a?, b?))).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64;
    let difference = bootstrap::difference(&pairs, seed)?;
    Some(MetricDifference {
        value: b.value.clone(),
        class,
        metric,
        a: mean(|p| p.0),
        b: mean(|p| p.1),
        difference,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::{Mode, Operation};
    use crate::counters::ClassLatency;

    const READ: Class = Class::new(Operation::Read, Mode::Sync);
    const FLUSH: Class = Class::new(Operation::Flush, Mode::Sync);

    fn device(class: Class, ns: u64, count: u64) -> Device {
        let mut latency = Latency { bytes: Bytes(4096 * count), ..Latency::default() };
        (0..count).for_each(|_| latency.whole.record(ns));
        Device { name: "sda".into(), classes: vec![ClassLatency { class, latency }], ..Device::default() }
    }

    #[test]
    fn a_value_that_helps_one_class_and_hurts_another_shows_both() {
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
        let of = |class, metric| all.iter().find(|d| d.class == class && d.metric == metric).unwrap();
        let read = of(READ, RunMetric::Mean);
        assert!(read.difference.is_clear() && read.difference.mean > 6e6, "{read:?}");
        let flush = of(FLUSH, RunMetric::Mean);
        assert!(flush.difference.high < -17e6, "{flush:?}");
        let rate = of(READ, RunMetric::PerSecond);
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
            (sides[0].mean(READ, RunMetric::Mean), sides[1].mean(READ, RunMetric::Mean)),
            (Some(10.0), None)
        );
    }
}
