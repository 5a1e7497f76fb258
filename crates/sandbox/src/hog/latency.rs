//! Access times in logarithmic classes: 1.6 % wide, whatever their number, without allocation while measuring.

use eke_model::units::Nanos;
use serde::{Deserialize, Serialize};

/// Classes for each power of two.
const PER_OCTAVE: usize = 64;
/// Up to 2^36 ns, a minute; what takes longer is in the last class.
const OCTAVES: usize = 30;

/// Times of many accesses.
#[derive(Debug, Clone)]
pub struct Latencies {
    classes: Vec<u64>,
    count: u64,
    total: u64,
    max: u64,
}

/// What many accesses took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// How many.
    pub count: u64,
    /// Half of them took less (1.6 % precise).
    pub p50: Nanos,
    /// 99 of 100 took less (1.6 % precise).
    pub p99: Nanos,
    /// The longest.
    pub max: Nanos,
    /// The mean.
    pub mean: Nanos,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { classes: vec![0; PER_OCTAVE * (OCTAVES + 1)], count: 0, total: 0, max: 0 }
    }
}

impl Latencies {
    /// Adds one.
    pub fn add(&mut self, time: Nanos) {
        self.classes[class(time.0)] += 1;
        self.count += 1;
        self.total = self.total.saturating_add(time.0);
        self.max = self.max.max(time.0);
    }

    /// What they are together; `None` of none.
    pub fn summary(&self) -> Option<Latency> {
        let mean = Nanos(self.total.checked_div(self.count)?);
        Some(Latency {
            count: self.count,
            p50: self.quantile(0.5),
            p99: self.quantile(0.99),
            max: Nanos(self.max),
            mean,
        })
    }

    fn quantile(&self, q: f64) -> Nanos {
        let rank = ((self.count as f64 * q).ceil() as u64).max(1);
        let mut seen = 0;
        let found = self.classes.iter().position(|n| {
            seen += n;
            seen >= rank
        });
        Nanos(found.map_or(self.max, upper_end).min(self.max))
    }
}

/// Below 64 ns every nanosecond has its class; above, the six bits after the highest decide.
fn class(ns: u64) -> usize {
    if ns < PER_OCTAVE as u64 {
        return ns as usize;
    }
    let octave = ns.ilog2() as usize - 6;
    let class = PER_OCTAVE * (octave + 1) + (ns >> octave) as usize - PER_OCTAVE;
    class.min(PER_OCTAVE * (OCTAVES + 1) - 1)
}

fn upper_end(class: usize) -> u64 {
    if class < PER_OCTAVE {
        return class as u64;
    }
    let octave = class / PER_OCTAVE - 1;
    (((class % PER_OCTAVE + PER_OCTAVE + 1) as u64) << octave) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_near_the_truth() {
        let mut l = Latencies::default();
        for n in 1..=10_000 {
            l.add(Nanos(n));
        }
        let s = l.summary().unwrap();
        assert_eq!((s.count, s.max, s.mean), (10_000, Nanos(10_000), Nanos(5_000)));
        assert!((5_000..5_100).contains(&s.p50.0) && (9_900..=10_000).contains(&s.p99.0), "{s:?}");
        assert_eq!(Latencies::default().summary(), None);
    }

    proptest::proptest! {
        #[test]
        fn a_class_holds_its_times(ns in 0u64..1 << 35) {
            let end = upper_end(class(ns));
            proptest::prop_assert!(end >= ns && end <= ns + ns / 64 + 1);
            proptest::prop_assert_eq!(class(end), class(ns));
        }

        #[test]
        fn any_time_has_a_class(ns in proptest::prelude::any::<u64>()) {
            let mut l = Latencies::default();
            l.add(Nanos(ns));
            proptest::prop_assert_eq!(l.summary().map(|s| s.max), Some(Nanos(ns)));
        }
    }
}
