//! Output of `--json` beside reports; `docs/schemas-bench.json` is generated from these types.

use std::collections::BTreeMap;

use serde::Serialize;

/// `replay`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Replay {
    /// The trace.
    pub trace: String,
    /// The rows.
    pub rows: Vec<Row>,
}

/// One value.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Row {
    /// A predictor, `oracle`, or `page cache`.
    pub variant: String,
    /// The conditions.
    pub params: BTreeMap<String, String>,
    /// The metric.
    pub metric: String,
    /// The unit.
    pub unit: String,
    /// The value.
    pub value: f64,
}
