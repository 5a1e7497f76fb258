//! Histograms of times, for reports of what has classes.

use std::collections::BTreeMap;

use eke_io::Histogram;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How many times fell between two powers of two.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Times {
    /// As in the rows.
    pub variant: String,
    /// Under which conditions.
    pub params: BTreeMap<String, Value>,
    /// What was timed: `sync read`.
    pub what: String,
    /// From the first bucket with something in it to the last: where it begins, in nanoseconds (it ends at twice that), and how many.
    pub buckets: Vec<(u64, u64)>,
}

impl Times {
    /// Of a histogram; `None` of averages, which have no buckets.
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

    /// How many there are of the bucket that begins there.
    pub fn count(&self, from_ns: u64) -> u64 {
        self.buckets.iter().find(|(from, _)| *from == from_ns).map_or(0, |(_, count)| *count)
    }
}
