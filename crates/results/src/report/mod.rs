//! A report: tidy rows, as JSON and as a table.
//!
//! - [`again`]: arms that are measured twice
//! - [`evidence`]: is a difference more than chance
//! - [`groups`]: comparable rows, and the reference of each
//! - [`predictions`]: what was predicted beside what came
//! - [`provenance`]: where a result comes from; `processor`: the name of the processor
//! - [`saved`]: a report from the text of a file
//! - [`times`]: histograms of latencies
//! - [`words`]: numbers as text; `verdict`, `table`: the report on a terminal

pub mod again;
pub mod evidence;
pub mod groups;
pub mod predictions;
mod processor;
pub mod provenance;
pub mod saved;
mod table;
pub mod times;
mod verdict;
pub mod words;

use std::collections::BTreeMap;

use eke_linux::read::kernel_release;
use eke_linux::{Root, parse};
use eke_model::units::Bytes;
use processor::processor;
pub use provenance::Provenance;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The result of an experiment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// The experiment's name, as on the command line.
    pub experiment: String,
    /// The command that repeats it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// Where it comes from; results of before November 2026 have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
    /// The machine.
    pub machine: Machine,
    /// The variant that is what eke does without an option, first in each table; if empty, the first of eke's own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub default_variant: String,
    /// The variants, in the order of the table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
    /// The metrics, in the order of the table; the first is the main one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// The measurements.
    pub rows: Vec<Row>,
    /// Histograms of latencies, if recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<times::Times>,
    /// Tables of more than variants and metrics.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<DataTable>,
    /// Notes: conditions, what was left out and why, where eke loses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A table beside the rows: conditions in more dimensions than a chart has.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DataTable {
    /// Its meaning, in a sentence.
    pub title: String,
    /// The heads of its columns.
    pub columns: Vec<String>,
    /// Its lines; a tab separates columns.
    pub lines: Vec<String>,
    /// Too long for a terminal: only JSON and page have its lines.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_long: bool,
}

/// One of the compared set-ups.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Variant {
    /// As in the rows.
    pub name: String,
    /// Its role in the comparison.
    pub role: Role,
    /// Its exact set-up, from its own package or from documented values.
    pub set_up: String,
}

/// The role of a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Role {
    /// No remedy, or plenty of memory: the reference for the others.
    #[default]
    Baseline,
    /// What people use today.
    Peer,
    /// eke.
    Ours,
    /// eke with one thing changed.
    Variation,
}

impl Role {
    /// Its CSS class in charts and tables.
    pub fn class(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Peer => "peer",
            Self::Ours => "ours",
            Self::Variation => "variation",
        }
    }
}

/// A metric.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Metric {
    /// As in the rows.
    pub name: String,
    /// Its meaning, in a sentence.
    pub about: String,
    /// Which direction is good.
    pub better: Better,
}

/// Which direction is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Better {
    /// Small numbers.
    #[default]
    Less,
    /// Large numbers.
    More,
}

/// The machine of an experiment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Machine {
    /// The kernel's release.
    pub kernel: String,
    /// The processor's architecture.
    pub architecture: String,
    /// The processor's name, if the kernel shows it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub processor: String,
    /// CPUs that may be used.
    pub cpus: usize,
    /// RAM in bytes.
    pub ram: Bytes,
}

impl Machine {
    /// The machine of `root`; an unreadable value is empty.
    pub fn of(root: &Root) -> Self {
        let text = |path: &str| root.read(path).unwrap_or_default();
        Self {
            kernel: kernel_release(root),
            architecture: std::env::consts::ARCH.to_owned(),
            processor: processor(&text("proc/cpuinfo")),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            ram: parse::meminfo::parse(&text("proc/meminfo")).total,
        }
    }
}

/// The samples of one metric of one variant.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Row {
    /// The variant.
    pub variant: String,
    /// The conditions.
    pub params: BTreeMap<String, Value>,
    /// The metric.
    pub metric: String,
    /// The unit.
    pub unit: String,
    /// One number or more for each run, in order.
    pub samples: Vec<f64>,
    /// How many samples each run has, where one has more than one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<usize>,
    /// Their median.
    pub median: f64,
    /// What was predicted before, in the same unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<f64>,
    /// The commit that it is of, if that is not the report's; several with blanks between them if its runs are of several.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub commit: String,
}

impl Row {
    /// A row with its median.
    pub fn new(
        variant: &str,
        params: &BTreeMap<String, Value>,
        metric: &str,
        unit: &str,
        samples: Vec<f64>,
    ) -> Self {
        let median = median(&samples);
        Self {
            variant: variant.into(),
            params: params.clone(),
            metric: metric.into(),
            unit: unit.into(),
            samples,
            runs: Vec::new(),
            median,
            predicted: None,
            commit: String::new(),
        }
    }

    /// True for more samples than an experiment has repeats: times of single requests.
    pub fn is_distribution(&self) -> bool {
        self.samples.len() > 20
    }
}

/// The middle value, or the mean of the two middle ones; 0 without samples.
pub fn median(samples: &[f64]) -> f64 {
    eke_statistics::median(samples).unwrap_or(0.0)
}

/// A metric of which small numbers are good.
pub fn less(name: &str, about: &str) -> Metric {
    Metric { name: name.into(), about: about.into(), better: Better::Less }
}

/// A metric of which large numbers are good.
pub fn more(name: &str, about: &str) -> Metric {
    Metric { better: Better::More, ..less(name, about) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_tidy_and_medians_are_medians() {
        assert_eq!((median(&[]), median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0])), (0.0, 2.0, 2.5));
        let row = Row::new("idle", &BTreeMap::from([("seconds".into(), 30.into())]), "CPU", "%", vec![0.5]);
        assert_eq!(
            serde_json::to_string(&row).unwrap(),
            r#"{"variant":"idle","params":{"seconds":30},"metric":"CPU","unit":"%","samples":[0.5],"median":0.5}"#
        );
    }
}
