//! A row of the table of metrics.

use crate::reading::Reading;

/// The kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A value that goes up and down.
    Gauge,
    /// A value that only goes up, until its counter restarts. Its samples end in `_total`.
    Counter,
    /// Text in labels, with the value 1. Its samples end in `_info`.
    Info,
    /// Counts up to each of several bounds. Its samples end in `_bucket`, `_sum` and `_count`.
    Histogram,
}

impl Kind {
    /// Its name in OpenMetrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
            Self::Info => "info",
            Self::Histogram => "histogram",
        }
    }

    /// The suffix of its samples' names; those of a histogram have [`Sample::part`].
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Gauge | Self::Histogram => "",
            Self::Counter => "_total",
            Self::Info => "_info",
        }
    }
}

/// One value and its labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Names and values, in this order.
    pub labels: Vec<(&'static str, String)>,
    /// In the metric's unit.
    pub value: f64,
    /// `_bucket`, `_sum` or `_count` for a histogram; else empty.
    pub part: &'static str,
}

impl Sample {
    /// Without labels.
    pub fn plain(value: f64) -> Self {
        Self { labels: Vec::new(), value, part: "" }
    }

    /// With one label.
    pub fn of(label: &'static str, name: impl Into<String>, value: f64) -> Self {
        Self { labels: vec![(label, name.into())], value, part: "" }
    }

    /// As this part of a histogram.
    #[must_use]
    pub fn part(self, part: &'static str) -> Self {
        Self { part, ..self }
    }

    /// With one more label.
    #[must_use]
    pub fn and(mut self, label: &'static str, name: impl Into<String>) -> Self {
        self.labels.push((label, name.into()));
        self
    }
}

/// A row: its name, its meaning, and the function that reads it.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name without `_total` and `_info`, but with its unit.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// Its unit, which the name ends with: `bytes`, `seconds`, `ratio`, or nothing.
    pub unit: &'static str,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// A sentence for the operator: what it is, and when it is absent.
    pub help: &'static str,
    /// Its samples; none if this machine lacks it.
    pub get: fn(&Reading) -> Vec<Sample>,
}

impl Metric {
    /// A gauge without labels.
    pub const fn gauge(
        name: &'static str,
        unit: &'static str,
        help: &'static str,
        get: fn(&Reading) -> Vec<Sample>,
    ) -> Self {
        Self { name, kind: Kind::Gauge, unit, labels: &[], help, get }
    }

    /// A counter without labels.
    pub const fn counter(
        name: &'static str,
        unit: &'static str,
        help: &'static str,
        get: fn(&Reading) -> Vec<Sample>,
    ) -> Self {
        Self { name, kind: Kind::Counter, unit, labels: &[], help, get }
    }

    /// The metric with these labels.
    pub const fn by(self, labels: &'static [&'static str]) -> Self {
        Self { labels, ..self }
    }
}

/// No sample without a value.
pub fn maybe(value: Option<f64>) -> Vec<Sample> {
    value.map(Sample::plain).into_iter().collect()
}

/// One sample.
pub fn one(value: f64) -> Vec<Sample> {
    vec![Sample::plain(value)]
}
