//! The part of a report (`docs/schemas.json`) that a comparison needs.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// One run of an experiment.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Report {
    /// Its name.
    pub experiment: String,
    /// Which direction is good, for each metric.
    #[serde(default)]
    pub metrics: Vec<Metric>,
    /// Its figures.
    pub rows: Vec<Row>,
}

/// What is measured.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Metric {
    /// As in the rows.
    pub name: String,
    /// Which direction is good.
    pub better: Better,
}

/// Which direction is good.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Small figures.
    #[default]
    Less,
    /// Large figures.
    More,
}

/// One figure of one variant.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Row {
    /// What was varied.
    pub variant: String,
    /// Under which conditions.
    #[serde(default)]
    pub params: BTreeMap<String, Value>,
    /// What was measured.
    pub metric: String,
    /// In what.
    #[serde(default)]
    pub unit: String,
    /// The middle one of the samples.
    pub median: f64,
}

impl Row {
    /// What makes it the same figure in two runs.
    pub fn key(&self) -> String {
        let params: String = self.params.iter().map(|(name, value)| format!(", {name} {value}")).collect();
        format!("{}, {}{params}", self.metric, self.variant)
    }
}
