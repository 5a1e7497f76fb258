//! What `--json` prints beside reports; `docs/schemas-bench.json` is generated from these types.

use std::collections::BTreeMap;

use serde::Serialize;

/// `replay`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Replay {
    /// What was replayed.
    pub trace: String,
    /// The figures.
    pub rows: Vec<Row>,
}

/// One figure.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Row {
    /// Whose: a predictor, `oracle`, `page cache`.
    pub variant: String,
    /// Under which conditions.
    pub params: BTreeMap<String, String>,
    /// Of what.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// The figure.
    pub value: f64,
}
