//! Latency histograms with buckets of powers of two, and what can be computed from them. Pure.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Number of buckets. Bucket `i` counts `2^i` to `2^(i+1)` ns; the last one also counts all longer times (9 minutes and
/// more).
pub const BUCKETS: usize = 40;

/// Latencies of one class. Count, sum and sum of squares are exact: from buckets alone, a standard deviation could be
/// off by a bucket's width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Histogram {
    /// Number of latencies.
    pub count: u64,
    /// Their sum, in nanoseconds.
    pub sum_ns: u64,
    /// The sum of their squares, in square microseconds; 0 where only averages are known.
    pub squares_us: u64,
    /// Number of latencies in each bucket; all 0 where only averages are known.
    pub buckets: [u64; BUCKETS],
}

impl Default for Histogram {
    fn default() -> Self {
        Self { count: 0, sum_ns: 0, squares_us: 0, buckets: [0; BUCKETS] }
    }
}

/// The bucket of a latency in nanoseconds.
pub fn bucket_of(ns: u64) -> usize {
    (ns.max(1).ilog2() as usize).min(BUCKETS - 1)
}

/// Where a bucket begins, in nanoseconds.
pub fn begins_ns(bucket: usize) -> u64 {
    1 << bucket.min(BUCKETS)
}

impl Histogram {
    /// A histogram from bucket counts. Each latency counts as the middle of its bucket.
    pub fn of_buckets(buckets: [u64; BUCKETS]) -> Self {
        let mut all = Self { buckets, ..Self::default() };
        for (i, count) in buckets.into_iter().enumerate() {
            let middle_ns = begins_ns(i) + begins_ns(i) / 2;
            let middle_us = middle_ns / 1_000;
            all.count = all.count.saturating_add(count);
            all.sum_ns = all.sum_ns.saturating_add(middle_ns.saturating_mul(count));
            all.squares_us =
                all.squares_us.saturating_add(middle_us.saturating_mul(middle_us).saturating_mul(count));
        }
        all
    }

    /// A histogram from a count and a sum, which give only an average.
    pub fn of_average(count: u64, sum_ns: u64) -> Self {
        Self { count, sum_ns, ..Self::default() }
    }

    /// Adds one latency.
    pub fn record(&mut self, ns: u64) {
        let us = ns / 1_000;
        self.count = self.count.saturating_add(1);
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.squares_us = self.squares_us.saturating_add(us.saturating_mul(us));
        let bucket = &mut self.buckets[bucket_of(ns)];
        *bucket = bucket.saturating_add(1);
    }

    /// Adds the latencies of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.squares_us = self.squares_us.saturating_add(other.squares_us);
        for (mine, others) in self.buckets.iter_mut().zip(other.buckets) {
            *mine = mine.saturating_add(others);
        }
    }

    /// The latencies since `before`, an earlier state of the same counters.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut buckets = self.buckets;
        for (now, then) in buckets.iter_mut().zip(before.buckets) {
            *now = now.saturating_sub(then);
        }
        Self {
            count: self.count.saturating_sub(before.count),
            sum_ns: self.sum_ns.saturating_sub(before.sum_ns),
            squares_us: self.squares_us.saturating_sub(before.squares_us),
            buckets,
        }
    }

    /// Whether it has no latencies.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether it has more than an average.
    pub fn has_buckets(&self) -> bool {
        self.buckets.iter().any(|count| *count > 0)
    }

    /// The average in nanoseconds.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }

    /// The standard deviation in nanoseconds, from the exact squares of whole microseconds. `None` where only averages
    /// are known.
    pub fn deviation_ns(&self) -> Option<f64> {
        let mean_us = self.mean_ns().filter(|_| self.has_buckets())? / 1e3;
        let variance = self.squares_us as f64 / self.count as f64 - mean_us * mean_us;
        Some(variance.max(0.0).sqrt() * 1e3)
    }

    /// The quantile `q` (0 to 1) in nanoseconds, interpolated linearly within its bucket: the error is less than the
    /// bucket's width. `None` if the histogram is empty or only averages are known.
    pub fn quantile_ns(&self, q: f64) -> Option<f64> {
        let in_buckets = sum(&self.buckets);
        let rank = q.clamp(0.0, 1.0) * in_buckets as f64;
        let mut before = 0.0;
        let mut last = None;
        for (i, count) in self.buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
            let (from_ns, count) = (begins_ns(i) as f64, *count as f64);
            if before + count >= rank {
                return Some(from_ns + from_ns * ((rank - before) / count).max(0.0));
            }
            before += count;
            last = Some(2.0 * from_ns);
        }
        last
    }

    /// The share (0 to 1) of latencies over `limit_ns`, interpolated linearly within its bucket. `None` as in
    /// [`Histogram::quantile_ns`].
    pub fn share_over(&self, limit_ns: u64) -> Option<f64> {
        let in_buckets = sum(&self.buckets);
        let at = bucket_of(limit_ns);
        let above = sum(&self.buckets[at + 1..]);
        let within = (limit_ns.saturating_sub(begins_ns(at)) as f64 / begins_ns(at) as f64).min(1.0);
        let partly = self.buckets[at] as f64 * (1.0 - within);
        (in_buckets > 0).then(|| (above as f64 + partly) / in_buckets as f64)
    }

    /// The buckets from the first to the last nonempty one: start in nanoseconds, count.
    pub fn rows(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let first = self.buckets.iter().position(|count| *count > 0).unwrap_or(BUCKETS);
        let last = self.buckets.iter().rposition(|count| *count > 0).map_or(first, |last| last + 1);
        (first..last).map(|i| (begins_ns(i), self.buckets[i]))
    }
}

/// The sum of bucket counts; saturates, because they may come from another process.
pub fn sum(buckets: &[u64]) -> u64 {
    buckets.iter().fold(0, |sum, count| sum.saturating_add(*count))
}

/// The JSON form: nonempty buckets only.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Histogram"))]
struct Sparse {
    /// Number of latencies.
    count: u64,
    /// Their sum, in nanoseconds.
    sum_ns: u64,
    /// The sum of their squares, in square microseconds; 0 where only averages are known.
    squares_us: u64,
    /// Nonempty buckets: start in nanoseconds (the end is twice that), and count.
    buckets: Vec<(u64, u64)>,
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let buckets = self.rows().filter(|(_, count)| *count > 0).collect();
        let Self { count, sum_ns, squares_us, .. } = *self;
        Sparse { count, sum_ns, squares_us, buckets }.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Sparse { count, sum_ns, squares_us, buckets: sparse } = Sparse::deserialize(from)?;
        let mut buckets = [0u64; BUCKETS];
        for (from_ns, count) in sparse {
            let bucket = &mut buckets[bucket_of(from_ns)];
            *bucket = bucket.saturating_add(count);
        }
        Ok(Self { count, sum_ns, squares_us, buckets })
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Histogram {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Sparse::schema_name()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Sparse::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(latencies: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        latencies.iter().for_each(|ns| histogram.record(*ns));
        histogram
    }

    #[test]
    fn buckets_are_powers_of_two_and_the_last_takes_the_rest() {
        assert_eq!([0, 1, 2, 3, 4, 1_000_000, u64::MAX].map(bucket_of), [0, 0, 1, 1, 2, 19, BUCKETS - 1]);
        let rows: Vec<_> = of(&[5, 5, 17]).rows().collect();
        assert_eq!(rows, [(4, 2), (8, 0), (16, 1)]);
    }

    #[test]
    fn average_and_deviation_are_exact() {
        let all =
            of(&[2_000_000, 4_000_000, 4_000_000, 4_000_000, 5_000_000, 5_000_000, 7_000_000, 9_000_000]);
        assert_eq!((all.mean_ns(), all.deviation_ns()), (Some(5e6), Some(2e6)), "the textbook's eight");
        let nothing = Histogram::default();
        assert_eq!((nothing.mean_ns(), nothing.deviation_ns(), nothing.quantile_ns(0.5)), (None, None, None));
    }

    #[test]
    fn an_average_has_neither_deviation_nor_percentiles() {
        let average = Histogram::of_average(4, 8_000_000);
        assert_eq!(average.mean_ns(), Some(2e6));
        assert_eq!(
            (average.deviation_ns(), average.quantile_ns(0.99), average.share_over(1)),
            (None, None, None)
        );
    }

    #[test]
    fn percentiles_are_interpolated_within_their_bucket() {
        let mut buckets = [0; BUCKETS];
        (buckets[10], buckets[12]) = (90, 10);
        let all = Histogram::of_buckets(buckets);
        assert_eq!(all.quantile_ns(0.45), Some(1024.0 * 1.5));
        assert_eq!(all.quantile_ns(0.95), Some(4096.0 * 1.5));
        assert_eq!((all.quantile_ns(0.0), all.quantile_ns(1.0)), (Some(1024.0), Some(8192.0)));
        assert_eq!(
            (all.share_over(2048), all.share_over(6144), all.share_over(1)),
            (Some(0.1), Some(0.05), Some(1.0))
        );
    }

    proptest::proptest! {
        #[test]
        fn a_percentile_is_in_the_bucket_of_the_true_one(mut latencies in proptest::collection::vec(1u64..1 << 38, 1..200), q in 0.001f64..1.0) {
            let found = of(&latencies).quantile_ns(q).unwrap();
            latencies.sort_unstable();
            let rank = ((q * latencies.len() as f64).ceil() as usize).max(1) - 1;
            let begin = begins_ns(bucket_of(latencies[rank])) as f64;
            proptest::prop_assert!(found >= begin && found <= 2.0 * begin, "{found} is not in the bucket of {}", latencies[rank]);
        }

        #[test]
        fn the_difference_of_two_states_is_what_was_added(a in proptest::collection::vec(0u64..1 << 34, 0..50), b in proptest::collection::vec(0u64..1 << 34, 0..50)) {
            let (first, second) = (of(&a), of(&b));
            let mut both = first;
            both.merge(&second);
            proptest::prop_assert_eq!(both.since(&first), second);
        }

        #[test]
        fn a_histogram_survives_json(a in proptest::collection::vec(0u64..1 << 45, 0..50)) {
            let text = serde_json::to_string(&of(&a)).unwrap();
            proptest::prop_assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), of(&a));
        }
    }
}
