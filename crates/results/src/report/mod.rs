//! A report: tidy rows, as JSON by its type and as a table for people.
//!
//! - [`groups`]: which rows belong beside each other, and what is compared with what
//! - [`saved`]: a report from the text of a file
//! - [`times`]: how long single requests took, as histograms
//! - [`words`]: figures as text; `verdict`, `table`: the report on a terminal

pub mod groups;
mod processor;
pub mod saved;
mod table;
pub mod times;
mod verdict;
pub mod words;

use std::collections::BTreeMap;

use eke_linux::{Root, parse};
use eke_model::units::Bytes;
use processor::processor;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What was measured, on what.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// The experiment's name, as on the command line.
    pub experiment: String,
    /// The command that makes it again.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// Where.
    pub machine: Machine,
    /// What was varied, in the order of the table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
    /// What was measured, in the order of the table; the first is the one that the experiment is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// The figures.
    pub rows: Vec<Row>,
    /// How long single requests took, where that was counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<times::Times>,
    /// What the reader should know: conditions, what was left out and why, where eke loses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One of the things that are compared.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Variant {
    /// As in the rows.
    pub name: String,
    /// Whose it is.
    pub role: Role,
    /// How it was set up: what exactly, by its own package or by documented values.
    pub set_up: String,
}

/// Whose a variant is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Role {
    /// No remedy at all, or memory to spare: what the others are seen beside.
    #[default]
    Baseline,
    /// What people use today.
    Peer,
    /// eke.
    Ours,
    /// eke with one thing of it changed.
    Lever,
}

/// What is measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Metric {
    /// As in the rows.
    pub name: String,
    /// What it is, in a sentence.
    pub about: String,
    /// Which direction is good.
    pub better: Better,
}

/// Which direction is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Better {
    /// Small figures.
    #[default]
    Less,
    /// Large figures.
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
    /// The processor's name, where the kernel tells it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub processor: String,
    /// CPUs that may be used.
    pub cpus: usize,
    /// RAM in bytes.
    pub ram: Bytes,
}

impl Machine {
    /// Of `root`; what cannot be read is empty.
    pub fn of(root: &Root) -> Self {
        let text = |path: &str| root.read(path).unwrap_or_default();
        Self {
            kernel: text("proc/sys/kernel/osrelease").trim().to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            processor: processor(&text("proc/cpuinfo")),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            ram: parse::meminfo::parse(&text("proc/meminfo")).total,
        }
    }
}

/// One figure of one variant, with all its samples.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Row {
    /// What was varied.
    pub variant: String,
    /// Under which conditions.
    pub params: BTreeMap<String, Value>,
    /// What was measured.
    pub metric: String,
    /// In what.
    pub unit: String,
    /// Every repeat, in order.
    pub samples: Vec<f64>,
    /// The middle one of them.
    pub median: f64,
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
            median,
        }
    }
}

/// The middle value, or the mean of the two middle ones; 0 of nothing.
pub fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// A metric whose small figures are good.
pub fn less(name: &str, about: &str) -> Metric {
    Metric { name: name.into(), about: about.into(), better: Better::Less }
}

/// A metric whose large figures are good.
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
