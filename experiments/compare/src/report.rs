//! The parts of a report (`docs/schemas.json`) that a comparison needs.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// One run of an experiment.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Report {
    /// The experiment's name.
    pub experiment: String,
    /// The good direction of each metric.
    #[serde(default)]
    pub metrics: Vec<Metric>,
    /// Its results.
    pub rows: Vec<Row>,
}

/// A metric.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Metric {
    /// Its name in the rows.
    pub name: String,
    /// Its good direction.
    pub better: Better,
}

/// The good direction of a metric.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Less is better.
    #[default]
    Less,
    /// More is better.
    More,
}

/// The result of one metric for one variant.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Row {
    /// The variant.
    pub variant: String,
    /// The conditions.
    #[serde(default)]
    pub params: BTreeMap<String, Value>,
    /// The metric.
    pub metric: String,
    /// Its unit.
    #[serde(default)]
    pub unit: String,
    /// The median of the samples.
    pub median: f64,
}

impl Row {
    /// Identifies the same result in two runs.
    pub fn key(&self) -> String {
        let params: String = self.params.iter().map(|(name, value)| format!(", {name} {value}")).collect();
        format!("{}, {}{params}", self.metric, self.variant)
    }
}
