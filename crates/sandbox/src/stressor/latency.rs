//! Access times in a histogram with a precision of one percent, which does not allocate while measuring.

use eke_model::units::Nanos;
use hdrhistogram::{CreationError, Histogram};
use serde::{Deserialize, Serialize};

/// A minute. A longer time counts as a minute, except in the maximum and the mean.
const LONGEST_NS: u64 = 60_000_000_000;
/// Significant digits.
const DIGITS: u8 = 2;

/// Times of many accesses.
#[derive(Debug, Clone)]
pub struct Latencies {
    times: Histogram<u64>,
    total: u64,
    max: u64,
}

/// A summary of access times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// The number of accesses.
    pub count: u64,
    /// The median (precision 1 %).
    pub p50: Nanos,
    /// The 99th percentile (precision 1 %).
    pub p99: Nanos,
    /// The maximum.
    pub max: Nanos,
    /// The mean.
    pub mean: Nanos,
}

impl Latencies {
    /// An empty histogram.
    ///
    /// # Errors
    /// The histogram refuses its bounds.
    pub fn new() -> Result<Self, CreationError> {
        Ok(Self { times: Histogram::new_with_bounds(1, LONGEST_NS, DIGITS)?, total: 0, max: 0 })
    }

    /// Adds an access.
    pub fn add(&mut self, time: Nanos) {
        self.times.saturating_record(time.0);
        self.total = self.total.saturating_add(time.0);
        self.max = self.max.max(time.0);
    }

    /// The summary; `None` without accesses.
    pub fn summary(&self) -> Option<Latency> {
        let count = self.times.len();
        let quantile = |q| Nanos(self.times.value_at_quantile(q).min(self.max));
        let mean = Nanos(self.total.checked_div(count)?);
        Some(Latency { count, p50: quantile(0.5), p99: quantile(0.99), max: Nanos(self.max), mean })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_near_the_truth() {
        let mut l = Latencies::new().unwrap();
        for n in 1..=10_000 {
            l.add(Nanos(n));
        }
        let s = l.summary().unwrap();
        assert_eq!((s.count, s.max, s.mean), (10_000, Nanos(10_000), Nanos(5_000)));
        assert!((5_000..5_100).contains(&s.p50.0) && (9_900..=10_000).contains(&s.p99.0), "{s:?}");
        assert_eq!(Latencies::new().unwrap().summary(), None);
    }

    proptest::proptest! {
        #[test]
        fn any_time_counts(ns in proptest::prelude::any::<u64>()) {
            let mut l = Latencies::new().unwrap();
            l.add(Nanos(ns));
            proptest::prop_assert_eq!(l.summary().map(|s| s.max), Some(Nanos(ns)));
        }
    }
}
