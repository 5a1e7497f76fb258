//! Compares the plan's prediction with the machine.

use eke_model::model::Model;
use eke_model::step::Prediction;
use eke_model::units::Bytes;

/// The ratio of fewer compressed bytes is that of a few pages, not of the machine.
pub const HELD_AT_LEAST: Bytes = Bytes::mib(16);
/// Relative deviation from which a prediction is reported as wrong.
pub const TOLERANCE: f64 = 0.15;
const PAUSE_MS: u64 = 3_600_000;

/// Remembers when a wrong prediction was last reported.
#[derive(Debug, Default)]
pub struct Check {
    reported_ms: Option<u64>,
}

impl Check {
    /// Returns a sentence if the prediction is wrong, at most once an hour.
    pub fn compare(&mut self, prediction: &Prediction, model: &Model, now_ms: u64) -> Option<String> {
        if self.reported_ms.is_some_and(|ms| now_ms.saturating_sub(ms) < PAUSE_MS) {
            return None;
        }
        let sentence = deviation(prediction, model)?;
        self.reported_ms = Some(now_ms);
        Some(sentence)
    }
}

/// Describes a deviation of more than [`TOLERANCE`]. `None` below it, or while less than [`HELD_AT_LEAST`] is
/// compressed.
pub fn deviation(prediction: &Prediction, model: &Model) -> Option<String> {
    let (predicted, is) = (prediction.ratio, model.effective_ratio?);
    if model.held < HELD_AT_LEAST || predicted <= 0.0 || (is - predicted).abs() <= TOLERANCE * predicted {
        return None;
    }
    let why = if is < predicted {
        "the stored pages compress less than the measured ones; `eke plan` measures again"
    } else {
        "the stored pages compress better than the measured ones, so there is more room than planned"
    };
    Some(format!("The compression ratio is {is:.1} for {}, predicted was {predicted:.1}: {why}.", model.held))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(held_mib: u64, ratio: f64) -> Model {
        Model { held: Bytes::mib(held_mib), effective_ratio: Some(ratio), ..Model::default() }
    }

    fn prediction(ratio: f64) -> Prediction {
        Prediction { ratio, ..Prediction::default() }
    }

    #[test]
    fn a_wrong_prediction_is_reported_with_both_ratios() {
        let sentence = deviation(&prediction(3.0), &model(20, 2.4)).unwrap();
        assert!(sentence.contains("is 2.4 for 20 MiB, predicted was 3.0: the stored pages"), "{sentence}");
        assert!(deviation(&prediction(3.0), &model(20, 3.9)).unwrap().contains("more room"));
    }

    #[test]
    fn a_small_deviation_or_a_small_sample_is_not_reported() {
        assert_eq!(deviation(&prediction(3.0), &model(20, 2.6)), None);
        assert_eq!(deviation(&prediction(3.0), &model(15, 1.0)), None);
        assert_eq!(deviation(&prediction(3.0), &Model::default()), None);
        assert_eq!(deviation(&prediction(0.0), &model(20, 2.0)), None);
    }

    #[test]
    fn it_is_reported_once_an_hour() {
        let mut check = Check::default();
        let mut compare = |now| check.compare(&prediction(3.0), &model(20, 2.0), now).is_some();
        assert_eq!(
            [0, 10_000, 3_599_999, 3_600_000, 3_600_001].map(&mut compare),
            [true, false, false, true, false]
        );
    }
}
