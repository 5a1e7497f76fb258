//! The difference between paired runs, with a confidence interval. The same seed gives the same interval.

use serde::{Deserialize, Serialize};

use crate::random::Random;
use crate::sample::{mean, median};

/// The number of bootstrap samples.
const DRAWS: usize = 10_000;

/// The mean of the differences of pairs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// B minus A.
    pub mean: f64,
    /// The lower end of the 95 % interval; minus infinity for a single pair.
    pub low: f64,
    /// The upper end of the 95 % interval; infinity for a single pair.
    pub high: f64,
}

impl Difference {
    /// True if the interval does not include 0.
    pub fn is_clear(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// The difference of pairs `(a, b)`: the percentile bootstrap of their mean (Efron and Tibshirani, "An Introduction to the Bootstrap", 1993,
/// chapter 13). With few pairs it is too narrow: five pairs cover about 85 %, not 95. `None` without pairs.
pub fn difference(pairs: &[(f64, f64)], seed: u64) -> Option<Difference> {
    let differences: Vec<f64> = pairs.iter().map(|(a, b)| b - a).collect();
    let count = differences.len();
    let mean = mean(&differences)?;
    if count == 1 {
        return Some(Difference { mean, low: f64::NEG_INFINITY, high: f64::INFINITY });
    }
    let mut random = Random::new(seed);
    let mut means: Vec<f64> = (0..DRAWS)
        .map(|_| {
            (0..count).map(|_| differences[random.below(count as u64) as usize]).sum::<f64>() / count as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| means[((DRAWS - 1) as f64 * share).round() as usize];
    Some(Difference { mean, low: at(0.025), high: at(0.975) })
}

/// The interval with which the median of `a` divided by that of `b` is covered with probability `share`: the percentile bootstrap, for runs that
/// are no pairs. `None` without runs or if a median of `b` can be 0.
pub fn ratio_of_medians(a: &[f64], b: &[f64], share: f64, seed: u64) -> Option<(f64, f64)> {
    let mut random = Random::new(seed);
    let mut drawn = |runs: &[f64]| {
        let again: Vec<f64> = runs.iter().map(|_| runs[random.below(runs.len() as u64) as usize]).collect();
        median(&again)
    };
    let draws = (0..DRAWS).map(|_| Some(drawn(a)? / drawn(b).filter(|b| *b != 0.0)?));
    let mut ratios: Vec<f64> = draws.collect::<Option<_>>()?;
    ratios.sort_by(f64::total_cmp);
    let at = |share: f64| ratios[((DRAWS - 1) as f64 * share).round() as usize];
    Some((at((1.0 - share) / 2.0), at((1.0 + share) / 2.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clear_difference_is_clear_and_chance_is_not() {
        let clear =
            difference(&[(10.0, 14.0), (11.0, 16.0), (9.0, 13.5), (10.5, 14.0), (10.0, 15.0)], 1).unwrap();
        assert!(clear.is_clear() && clear.low > 3.0 && clear.high < 5.5, "{clear:?}");
        assert!((clear.mean - 4.4).abs() < 1e-9);
        let chance = difference(&[(10.0, 12.0), (12.0, 10.0), (9.0, 10.0), (10.0, 9.0)], 1).unwrap();
        assert!(!chance.is_clear(), "{chance:?}");
    }

    #[test]
    fn the_same_seed_is_the_same_interval() {
        let pairs = [(1.0, 2.0), (2.0, 2.5), (1.5, 4.0)];
        assert_eq!(difference(&pairs, 7), difference(&pairs, 7));
        let one = difference(&pairs[..1], 7).unwrap();
        assert!(one.low.is_infinite() && !one.is_clear());
        assert_eq!(difference(&[], 7), None);
    }

    #[test]
    fn a_ratio_of_medians_is_covered() {
        let (a, b) = ([20.0, 22.0, 21.0, 19.0, 20.5], [10.0, 10.5, 9.5, 10.2, 9.9]);
        let (low, high) = ratio_of_medians(&a, &b, 0.95, 1).unwrap();
        assert!(1.7 < low && low < 2.05 && 2.05 < high && high < 2.4, "{low} to {high}");
        assert_eq!(ratio_of_medians(&[], &b, 0.95, 1), None);
        assert_eq!(ratio_of_medians(&a, &[0.0], 0.95, 1), None);
    }

    proptest::proptest! {
        #[test]
        fn the_interval_is_within_the_differences(pairs in proptest::collection::vec((0.0f64..1e9, 0.0f64..1e9), 2..12), seed in 0u64..100) {
            let found = difference(&pairs, seed).unwrap();
            let all: Vec<f64> = pairs.iter().map(|(a, b)| b - a).collect();
            let (least, most) = (all.iter().copied().fold(f64::INFINITY, f64::min), all.iter().copied().fold(f64::NEG_INFINITY, f64::max));
            proptest::prop_assert!(least <= found.low + 1e-3 && found.low <= found.high && found.high <= most + 1e-3);
        }
    }
}
