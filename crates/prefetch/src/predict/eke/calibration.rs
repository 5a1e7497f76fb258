//! What probabilities turned out to mean: said so, and put right.

use serde::{Deserialize, Serialize};

/// How far logits go: beyond it a probability is as good as 0 or 1.
const FAR: f64 = 12.0;

/// The greatest step of learning.
const STEP: f64 = 0.1;

/// Platt's scaling, learned online: the logit of a probability times a slope, plus an offset, each step scaled by the gradients so far
/// (Platt, "Probabilistic outputs for support vector machines", 1999; AdaGrad: Duchi, Hazan, Singer, 2011). The slope stays above 0, so
/// that it changes no order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    slope: f64,
    offset: f64,
    seen: [f64; 2],
}

impl Default for Calibration {
    fn default() -> Self {
        Self { slope: 1.0, offset: 0.0, seen: [1e-2; 2] }
    }
}

impl Calibration {
    /// The probability that this one means; 0 and 1 stay what they are.
    pub fn of(&self, raw: f64) -> f64 {
        if raw <= 0.0 || raw >= 1.0 {
            raw.clamp(0.0, 1.0)
        } else {
            logistic(self.slope * logit(raw) + self.offset)
        }
    }

    /// Learns from probabilities that were given together, and what came.
    pub fn learn(&mut self, turned_out: impl Iterator<Item = (f64, bool)>) {
        let mut gradient = [0.0; 2];
        for (raw, came) in turned_out.filter(|(raw, _)| *raw > 0.0 && *raw < 1.0) {
            let error = self.of(raw) - f64::from(u8::from(came));
            gradient[0] += error * logit(raw);
            gradient[1] += error;
        }
        self.slope = (self.slope - self.step(0, gradient[0])).clamp(0.2, 5.0);
        self.offset = (self.offset - self.step(1, gradient[1])).clamp(-FAR, FAR);
    }

    fn step(&mut self, of: usize, gradient: f64) -> f64 {
        self.seen[of] += gradient * gradient;
        STEP * gradient / self.seen[of].sqrt()
    }

    /// Puts right what a foreign state may have.
    pub fn mend(&mut self) {
        let sound =
            [self.slope, self.offset, self.seen[0], self.seen[1]].iter().all(|number| number.is_finite());
        let inside = (0.2..=5.0).contains(&self.slope)
            && self.offset.abs() <= FAR
            && self.seen.iter().all(|s| *s > 0.0);
        if !(sound && inside) {
            *self = Self::default();
        }
    }
}

fn logit(p: f64) -> f64 {
    (p / (1.0 - p)).ln().clamp(-FAR, FAR)
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The upper borders of the bins of [`Reliability`]; small probabilities are most of all and have bins of their own.
pub const BORDERS: [f64; 10] = [0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 1.0];

/// A bin: what was said, and what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Bin {
    /// Sum of the probabilities.
    predicted: f64,
    /// How many came true.
    came: f64,
    /// How many there were.
    pub count: f64,
}

impl Bin {
    /// The mean of what was said.
    pub fn mean_predicted(&self) -> f64 {
        self.predicted / self.count
    }

    /// The share that came true.
    pub fn observed(&self) -> f64 {
        self.came / self.count
    }
}

/// The reliability table: of what was said with such a probability, how much came true. Each was counted as it was said at its time,
/// before anything was learned from it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Reliability {
    bins: [Bin; BORDERS.len()],
}

impl Reliability {
    /// Counts one.
    pub fn add(&mut self, probability: f64, came: bool) {
        let at = BORDERS.partition_point(|border| *border < probability).min(BORDERS.len() - 1);
        let bin = &mut self.bins[at];
        bin.predicted += probability;
        bin.came += f64::from(u8::from(came));
        bin.count += 1.0;
    }

    /// The bins that have any, with their lower and upper borders.
    pub fn bins(&self) -> impl Iterator<Item = (f64, f64, Bin)> + '_ {
        let lower = std::iter::once(0.0).chain(BORDERS);
        lower
            .zip(BORDERS)
            .zip(self.bins)
            .filter(|(_, bin)| bin.count > 0.0)
            .map(|((from, to), bin)| (from, to, bin))
    }

    /// The mean distance between said and seen, weighed by count (expected calibration error); none before anything was seen.
    pub fn error(&self) -> Option<f64> {
        let count: f64 = self.bins.iter().map(|bin| bin.count).sum();
        let off: f64 = self.bins.iter().map(|bin| (bin.predicted - bin.came).abs()).sum();
        (count > 0.0).then(|| off / count)
    }

    /// Puts right what a foreign state may have.
    pub fn mend(&mut self) {
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
        // What is said with 0.8 comes in 4 of 10, with 0.2 in 1 of 10.
        (0..5000).for_each(|i| calibration.learn([(0.8, i % 10 < 4), (0.2, i % 10 == 9)].into_iter()));
        assert!((calibration.of(0.8) - 0.4).abs() < 0.05, "{}", calibration.of(0.8));
        assert!((calibration.of(0.2) - 0.1).abs() < 0.05, "{}", calibration.of(0.2));
        let said: Vec<f64> = (0..=100).map(|p| calibration.of(f64::from(p) / 100.0)).collect();
        assert!(said.windows(2).all(|pair| pair[0] < pair[1]) && said[0] == 0.0 && said[100] == 1.0);
    }

    #[test]
    fn the_table_says_what_came() {
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
