//! Histograms of latencies.

use std::collections::BTreeMap;

use eke_io::Histogram;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A histogram of latencies, with a bucket for each power of two.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Times {
    /// The variant, as in the rows.
    pub variant: String,
    /// The conditions.
    pub params: BTreeMap<String, Value>,
    /// What was timed: `sync read`.
    pub what: String,
    /// The buckets from the first to the last non-empty one: the beginning in nanoseconds (the end is twice that), and the count.
    pub buckets: Vec<(u64, u64)>,
}

impl Times {
    /// From a histogram; `None` for averages, which have no buckets.
    pub fn of(
        variant: &str,
        params: &BTreeMap<String, Value>,
        what: String,
        histogram: &Histogram,
    ) -> Option<Self> {
        let buckets: Vec<(u64, u64)> = histogram.rows().collect();
        histogram.has_buckets().then(|| Self {
            variant: variant.to_owned(),
            params: params.clone(),
            what,
            buckets,
        })
    }

    /// The count of the bucket that begins at `from_ns`.
    pub fn count(&self, from_ns: u64) -> u64 {
        self.buckets.iter().find(|(from, _)| *from == from_ns).map_or(0, |(_, count)| *count)
    }
}
