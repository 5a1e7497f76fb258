//! The last calibration step: the observed share of similar predictions, kept monotonic.

use serde::{Deserialize, Serialize};

/// The upper borders of the bins; small probabilities are the most frequent and need finer ones.
const BORDERS: [f64; 14] = [0.003, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0];

/// The prior: the predicted probability counts as this many observations.
const PRIOR: f64 = 20.0;

/// The most that a bin remembers; older counts fade.
const MEMORY: f64 = 4000.0;

/// A bin, or several pooled ones: the sums of predictions, of outcomes, and their number.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
struct Block {
    predicted: f64,
    came: f64,
    count: f64,
}

impl Block {
    fn mean_predicted(&self) -> f64 {
        self.predicted / self.count
    }

    /// The observed share, with the prior.
    fn share(&self) -> f64 {
        (self.came + PRIOR * self.mean_predicted()) / (self.count + PRIOR)
    }

    fn with(self, other: Self) -> Self {
        Self {
            predicted: self.predicted + other.predicted,
            came: self.came + other.came,
            count: self.count + other.count,
        }
    }
}

/// A monotonic line through the bins: isotonic regression by pooling neighbours that violate the order (Ayer et al., 1955), linear between their
/// middles, so that different predictions stay different.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Isotone {
    bins: [Block; BORDERS.len()],
    /// Points of the line, from 0,0 to 1,1.
    #[serde(skip)]
    line: Vec<(f64, f64)>,
}

impl Isotone {
    /// The calibrated probability.
    pub fn of(&self, predicted: f64) -> f64 {
        let after = self.line.partition_point(|point| point.0 <= predicted);
        match (after.checked_sub(1).and_then(|at| self.line.get(at)), self.line.get(after)) {
            (Some(a), Some(b)) => a.1 + (predicted - a.0) / (b.0 - a.0) * (b.1 - a.1),
            _ => predicted,
        }
    }

    /// Learns from predictions made together, each with its outcome.
    pub fn learn(&mut self, outcomes: impl Iterator<Item = (f64, bool)>) {
        for (predicted, came) in outcomes {
            let at = BORDERS.partition_point(|border| *border < predicted).min(BORDERS.len() - 1);
            let bin = &mut self.bins[at];
            let fade = if bin.count < MEMORY { 1.0 } else { 1.0 - 1.0 / MEMORY };
            *bin = Block { predicted: bin.predicted * fade, came: bin.came * fade, count: bin.count * fade };
            *bin = bin.with(Block { predicted, came: f64::from(u8::from(came)), count: 1.0 });
        }
        self.draw();
    }

    fn draw(&mut self) {
        let mut blocks: Vec<Block> = Vec::with_capacity(BORDERS.len());
        for bin in self.bins.iter().filter(|bin| bin.predicted > 0.0 && bin.predicted < bin.count) {
            blocks.push(*bin);
            while let [.., before, last] = blocks[..] {
                if before.share() < last.share() {
                    break;
                }
                blocks.truncate(blocks.len() - 2);
                blocks.push(before.with(last));
            }
        }
        let middles = blocks.iter().map(|block| (block.mean_predicted(), block.share()));
        self.line = std::iter::once((0.0, 0.0)).chain(middles).chain(std::iter::once((1.0, 1.0))).collect();
    }

    /// Resets invalid numbers and rebuilds the line, which is not stored.
    pub fn sanitize(&mut self) {
        let sound = |bin: &Block| {
            [bin.predicted, bin.came, bin.count].iter().all(|n| (0.0..=2.0 * MEMORY).contains(n))
                && bin.came <= bin.count
        };
        if !self.bins.iter().all(sound) {
            self.bins = Default::default();
        }
        self.draw();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_the_outcomes_and_is_monotonic() {
        let mut isotone = Isotone::default();
        assert_eq!([isotone.of(0.0), isotone.of(0.3), isotone.of(1.0)], [0.0, 0.3, 1.0]);
        // 0.6 always comes true, 0.35 in a fifth, 0.25 in a third: the last two violate the order and are pooled.
        for i in 0..3000 {
            isotone.learn([(0.6, true), (0.35, i % 5 == 0), (0.25, i % 3 == 0)].into_iter());
        }
        assert!(isotone.of(0.6) > 0.98);
        assert!((isotone.of(0.3) - 0.2667).abs() < 0.01, "{}", isotone.of(0.3));
        let line: Vec<f64> = (0..=1000).map(|p| isotone.of(f64::from(p) / 1000.0)).collect();
        assert!(line.windows(2).all(|pair| pair[0] < pair[1]) && line[0] == 0.0 && line[1000] == 1.0);
    }

    #[test]
    fn foreign_bins_are_dropped() {
        let mut isotone = Isotone::default();
        isotone.bins[3] = Block { predicted: 1.0, came: 9.0, count: -2.0 };
        isotone.sanitize();
        assert_eq!((isotone.bins[3], isotone.of(0.4)), (Block::default(), 0.4));
    }
}
