//! The experts' weights: experts that predicted the outcome better gain, and none drops to zero.

use serde::{Deserialize, Serialize};

/// The share of all weight that is distributed evenly after each event, so that an expert recovers quickly after habits change (fixed share:
/// Herbster, Warmuth, "Tracking the best expert", 1998).
const SHARED: f64 = 0.01;

/// The weights of the experts; they sum to 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mix {
    weights: Vec<f64>,
}

impl Mix {
    /// Equal weights.
    pub fn new(experts: usize) -> Self {
        Self { weights: vec![1.0 / experts as f64; experts] }
    }

    /// The weights, one per expert.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Learns from the probability that each expert gave to the outcome: Bayes' rule, which minimises log loss.
    pub fn learn(&mut self, given: &[f64]) {
        let even = 1.0 / self.weights.len() as f64;
        let products: Vec<f64> = self.weights.iter().zip(given).map(|(w, p)| w * p.max(1e-9)).collect();
        let sum: f64 = products.iter().sum();
        if sum.is_finite() && sum > 0.0 && products.len() == self.weights.len() {
            self.weights =
                products.iter().map(|product| (1.0 - SHARED) * product / sum + SHARED * even).collect();
        }
    }

    /// Resets invalid weights and normalises the others.
    pub fn sanitize(&mut self, experts: usize) {
        let sum: f64 = self.weights.iter().sum();
        let sound = self.weights.len() == experts
            && self.weights.iter().all(|w| w.is_finite() && *w >= 0.0)
            && sum > 0.0;
        if sound {
            self.weights.iter_mut().for_each(|weight| *weight /= sum);
        } else {
            *self = Self::new(experts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_the_better_expert_and_recovers() {
        let mut mix = Mix::new(2);
        mix.learn(&[0.6, 0.2]);
        // Bayes: 3/4 and 1/4, of which 1 % is shared.
        assert!((mix.weights()[0] - (0.99 * 0.75 + 0.005)).abs() < 1e-12);
        (0..1000).for_each(|_| mix.learn(&[0.6, 0.2]));
        assert!(mix.weights()[0] > 0.99);
        (0..10).for_each(|_| mix.learn(&[0.2, 0.6]));
        assert!(
            mix.weights()[1] > 0.95,
            "ten events are enough after a thousand others: {:?}",
            mix.weights()
        );
    }

    #[test]
    fn foreign_weights_are_mended() {
        for weights in [vec![], vec![f64::NAN, 1.0], vec![-1.0, 2.0], vec![0.0, 0.0], vec![1.0, 1.0, 1.0]] {
            let mut mix = Mix { weights };
            mix.sanitize(2);
            assert_eq!(mix, Mix::new(2));
        }
    }
}
