//! What differs between pairs of runs, with a confidence interval. The same seed gives the same interval.

use crate::random::Random;
use crate::sample::mean;

/// How often pairs are drawn.
const DRAWS: usize = 10_000;

/// A difference, as the mean of the pairs' own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// B less A.
    pub mean: f64,
    /// 95 of 100 such intervals hold the true one: from here,
    pub low: f64,
    /// to here. With one pair there is no interval: it is without end.
    pub high: f64,
}

/// The difference of pairs `(a, b)`: the percentile bootstrap of their mean (Efron and Tibshirani, "An Introduction to the Bootstrap", 1993,
/// chapter 13). Few pairs make it too narrow: five pairs cover some 85 % rather than 95. `None` of no pairs.
pub fn difference(pairs: &[(f64, f64)], seed: u64) -> Option<Difference> {
    let differences: Vec<f64> = pairs.iter().map(|(a, b)| b - a).collect();
    let count = differences.len();
    let mean = mean(&differences)?;
    if count == 1 {
        return Some(Difference { mean, low: f64::NEG_INFINITY, high: f64::INFINITY });
    }
    let mut random = Random::new(seed);
    let mut means: Vec<f64> = (0..DRAWS)
        .map(|_| (0..count).map(|_| differences[random.below(count as u64) as usize]).sum::<f64>() / count as f64)
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| means[((DRAWS - 1) as f64 * share).round() as usize];
    Some(Difference { mean, low: at(0.025), high: at(0.975) })
}
