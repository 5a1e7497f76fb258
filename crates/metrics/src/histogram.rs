//! A histogram as samples of Prometheus and OpenMetrics: cumulative counts up to each bound, the last one infinite.

use eke_model::histogram::{BUCKETS, Histogram, begins_ns, sum};

use crate::metric::Sample;

/// The buckets with a finite bound: from 4.1 µs (2^12 ns) to 34 s (2^35 ns), the same for every scrape. Shorter times are in the first
/// bucket, longer ones in the infinite one.
const BOUNDS: std::ops::RangeInclusive<usize> = 12..=35;

/// Nanoseconds in a second.
const NS: f64 = 1e9;

/// The samples of one histogram, each with `label`. If only averages are known, the infinite bucket is the only one.
///
/// A bucket of [`Histogram`] excludes its end and `le` includes it: latencies are whole nanoseconds, so the error is one nanosecond.
pub fn samples(label: &'static str, name: &str, of: &Histogram) -> Vec<Sample> {
    let sample = |part, value: f64| Sample::of(label, name, value).part(part);
    let bucket = |le: &str, count: u64| sample("_bucket", count as f64).and("le", le);
    let up_to = |bound: usize| sum(&of.buckets[..bound.min(BUCKETS)]);
    let mut samples: Vec<Sample> = Vec::new();
    if of.has_buckets() {
        samples.extend(BOUNDS.map(|bound| bucket(&(begins_ns(bound) as f64 / NS).to_string(), up_to(bound))));
    }
    samples.push(bucket("+Inf", of.count));
    samples.push(sample("_count", of.count as f64));
    samples.push(sample("_sum", of.sum_ns as f64 / NS));
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(of: &Histogram) -> Vec<String> {
        let line = |s: &Sample| {
            let le = s.labels.get(1).map_or("", |(_, le)| le.as_str());
            format!("{}{{{le}}} {}", s.part, s.value)
        };
        samples("operation", "read", of).iter().map(line).collect()
    }

    #[test]
    fn counts_add_up_to_each_bound() {
        let mut of = Histogram::default();
        [900, 5_000, 5_000, 3_000_000_000, u64::MAX / 4].iter().for_each(|ns| of.record(*ns));
        let shown = shown(&of);
        for line in [
            "_bucket{0.000004096} 1",
            "_bucket{0.000008192} 3",
            "_bucket{2.147483648} 3",
            "_bucket{4.294967296} 4",
            "_bucket{34.359738368} 4",
            "_bucket{+Inf} 5",
            "_count{} 5",
        ] {
            assert!(shown.iter().any(|l| l == line), "{line} lacks in {shown:?}");
        }
        assert_eq!(shown.len(), BOUNDS.count() + 3);
    }

    #[test]
    fn an_average_has_no_bounds() {
        assert_eq!(
            shown(&Histogram::of_average(4, 8_000_000)),
            ["_bucket{+Inf} 4", "_count{} 4", "_sum{} 0.008"]
        );
    }

    proptest::proptest! {
        #[test]
        fn counts_never_fall_and_end_at_all(latencies in proptest::collection::vec(0u64..1 << 45, 0..60)) {
            let mut of = Histogram::default();
            latencies.iter().for_each(|ns| of.record(*ns));
            let samples = samples("operation", "read", &of);
            let buckets: Vec<f64> = samples.iter().filter(|s| s.part == "_bucket").map(|s| s.value).collect();
            proptest::prop_assert!(buckets.is_sorted(), "{:?}", buckets);
            proptest::prop_assert_eq!(buckets.last().copied(), Some(latencies.len() as f64));
        }
    }
}
