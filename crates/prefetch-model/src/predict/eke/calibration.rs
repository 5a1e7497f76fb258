//! Calibrates predicted probabilities against outcomes.

use serde::{Deserialize, Serialize};

/// The bound of logits; beyond it a probability is practically 0 or 1.
const FAR: f64 = 12.0;

/// The largest learning step.
const STEP: f64 = 0.1;

/// How many probabilities are combined.
pub const PARTS: usize = 2;

/// Combines probabilities of one event: a logistic regression on their logits, learned online, each step scaled by the gradients so far (with one
/// part it is Platt's scaling: Platt, "Probabilistic outputs for support vector machines", 1999; AdaGrad: Duchi, Hazan, Singer, 2011). Weights stay
/// above 0, so the result grows with each part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    weights: [f64; PARTS],
    offset: f64,
    seen: [f64; PARTS + 1],
}

impl Default for Calibration {
    fn default() -> Self {
        Self { weights: [1.0 / PARTS as f64; PARTS], offset: 0.0, seen: [1e-2; PARTS + 1] }
    }
}

impl Calibration {
    /// The combined probability.
    pub fn of(&self, parts: [f64; PARTS]) -> f64 {
        let sum: f64 = self.weights.iter().zip(parts).map(|(weight, part)| weight * logit(part)).sum();
        logistic(sum + self.offset)
    }

    /// Learns from predictions made together, each with its outcome.
    pub fn learn(&mut self, outcomes: impl Iterator<Item = ([f64; PARTS], bool)>) {
        let mut gradient = [0.0; PARTS + 1];
        for (parts, came) in outcomes {
            let error = self.of(parts) - f64::from(u8::from(came));
            gradient.iter_mut().zip(parts).for_each(|(sum, part)| *sum += error * logit(part));
            gradient[PARTS] += error;
        }
        for (part, sum) in gradient.into_iter().enumerate().take(PARTS) {
            self.weights[part] = (self.weights[part] - self.step(part, sum)).clamp(0.02, 3.0);
        }
        self.offset = (self.offset - self.step(PARTS, gradient[PARTS])).clamp(-FAR, FAR);
    }

    fn step(&mut self, of: usize, gradient: f64) -> f64 {
        self.seen[of] += gradient * gradient;
        STEP * gradient / self.seen[of].sqrt()
    }

    /// Resets a state that contains invalid numbers.
    pub fn sanitize(&mut self) {
        let inside =
            self.weights.iter().all(|weight| (0.02..=3.0).contains(weight)) && self.offset.abs() <= FAR;
        if !(inside && self.seen.iter().all(|seen| seen.is_finite() && *seen > 0.0)) {
            *self = Self::default();
        }
    }
}

fn logit(p: f64) -> f64 {
    // 0 gives -∞ and 1 gives ∞, both clamped; NaN gives the middle.
    let logit = (p / (1.0 - p)).ln();
    if logit.is_nan() { 0.0 } else { logit.clamp(-FAR, FAR) }
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The upper borders of the bins of [`Reliability`]; small probabilities are the most frequent and have bins of their own.
pub const BORDERS: [f64; 10] = [0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 1.0];

/// A bin: predictions and their outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Bin {
    /// Sum of the predicted probabilities.
    predicted: f64,
    /// Predictions that came true.
    came: f64,
    /// All predictions.
    pub count: f64,
}

impl Bin {
    /// The mean predicted probability.
    pub fn mean_predicted(&self) -> f64 {
        self.predicted / self.count
    }

    /// The share that came true.
    pub fn observed(&self) -> f64 {
        self.came / self.count
    }
}

/// The reliability table: for each range of predicted probabilities, the share that came true. Predictions are counted as they were made, before
/// learning from their outcome.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Reliability {
    bins: [Bin; BORDERS.len()],
}

impl Reliability {
    /// Counts a prediction.
    pub fn add(&mut self, probability: f64, came: bool) {
        let at = BORDERS.partition_point(|border| *border < probability).min(BORDERS.len() - 1);
        let bin = &mut self.bins[at];
        bin.predicted += probability;
        bin.came += f64::from(u8::from(came));
        bin.count += 1.0;
    }

    /// The non-empty bins with their lower and upper borders.
    pub fn bins(&self) -> impl Iterator<Item = (f64, f64, Bin)> + '_ {
        let lower = std::iter::once(0.0).chain(BORDERS);
        lower
            .zip(BORDERS)
            .zip(self.bins)
            .filter(|(_, bin)| bin.count > 0.0)
            .map(|((from, to), bin)| (from, to, bin))
    }

    /// The mean distance between prediction and outcome, weighted by count (expected calibration error); `None` without predictions.
    pub fn error(&self) -> Option<f64> {
        let count: f64 = self.bins.iter().map(|bin| bin.count).sum();
        let off: f64 = self.bins.iter().map(|bin| (bin.predicted - bin.came).abs()).sum();
        (count > 0.0).then(|| off / count)
    }

    /// Resets a state that contains invalid numbers.
    pub fn sanitize(&mut self) {
        let sound =
            |bin: &Bin| [bin.predicted, bin.came, bin.count].iter().all(|n| n.is_finite() && *n >= 0.0);
        if !self.bins.iter().all(sound) {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overconfidence_is_put_right_and_the_order_stays() {
        let mut calibration = Calibration::default();
        // 0.8 is predicted for 4 of 10, 0.2 for 1 of 10.
        (0..5000).for_each(|i| {
            calibration.learn([([0.8; PARTS], i % 10 < 4), ([0.2; PARTS], i % 10 == 9)].into_iter())
        });
        assert!((calibration.of([0.8; PARTS]) - 0.4).abs() < 0.05, "{}", calibration.of([0.8; PARTS]));
        assert!((calibration.of([0.2; PARTS]) - 0.1).abs() < 0.05, "{}", calibration.of([0.2; PARTS]));
        let predicted: Vec<f64> = (0..=100).map(|p| calibration.of([f64::from(p) / 100.0; PARTS])).collect();
        assert!(
            predicted.windows(2).all(|pair| pair[0] < pair[1])
                && predicted[0] < 0.01
                && predicted[100] > 0.99,
            "{predicted:?}"
        );
    }

    #[test]
    fn the_informative_part_gets_more_weight() {
        let mut calibration = Calibration::default();
        // The first part is informative, the second is constant.
        for i in 0..5000 {
            calibration.learn([([0.9, 0.3], i % 10 > 0), ([0.1, 0.3], i % 10 == 0)].into_iter());
        }
        assert!(
            (calibration.of([0.9, 0.3]) - 0.9).abs() < 0.05
                && (calibration.of([0.1, 0.3]) - 0.1).abs() < 0.05
        );
    }

    #[test]
    fn the_table_has_the_observed_shares() {
        let mut table = Reliability::default();
        assert_eq!(table.error(), None);
        [(0.15, true), (0.12, false), (1.0, true), (0.0, false)]
            .into_iter()
            .for_each(|(p, came)| table.add(p, came));
        let bins: Vec<_> =
            table.bins().map(|(from, to, bin)| (from, to, bin.observed(), bin.count)).collect();
        assert_eq!(bins, [(0.0, 0.01, 0.0, 1.0), (0.1, 0.2, 0.5, 2.0), (0.9, 1.0, 1.0, 1.0)]);
        assert!((table.error().unwrap() - (0.0 + 0.73 + 0.0) / 4.0).abs() < 1e-12);
    }
}
