//! The plan's prediction beside what happens.

use eke_model::model::Model;
use eke_model::step::Prediction;
use eke_model::units::Bytes;

/// Below this the ratio is that of a few pages, not of the machine's.
pub const HELD_AT_LEAST: Bytes = Bytes::mib(16);
/// A prediction that is further off is worth a word.
pub const TOLERANCE: f64 = 0.15;
const PAUSE_MS: u64 = 3_600_000;

/// When it was last said.
#[derive(Debug, Default)]
pub struct Check {
    said_ms: Option<u64>,
}

impl Check {
    /// A sentence if the prediction is off, at most once an hour.
    pub fn compare(&mut self, prediction: &Prediction, model: &Model, now_ms: u64) -> Option<String> {
        if self.said_ms.is_some_and(|said| now_ms.saturating_sub(said) < PAUSE_MS) {
            return None;
        }
        let sentence = deviation(prediction, model)?;
        self.said_ms = Some(now_ms);
        Some(sentence)
    }
}

/// What differs by more than [`TOLERANCE`] of the predicted, once enough is held to tell.
pub fn deviation(prediction: &Prediction, model: &Model) -> Option<String> {
    let (predicted, is) = (prediction.ratio, model.effective_ratio?);
    if model.held < HELD_AT_LEAST || predicted <= 0.0 || (is - predicted).abs() <= TOLERANCE * predicted {
        return None;
    }
    let why = if is < predicted {
        "the pages that are held compress less than those measured; `eke plan` measures again"
    } else {
        "the pages that are held compress better than those measured, so there is more room than planned"
    };
    Some(format!(
        "The compression ratio was predicted {predicted:.1}, is {is:.1} (of {} held): {why}.",
        model.held
    ))
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
    fn a_prediction_that_is_off_is_said_with_both_figures() {
        let said = deviation(&prediction(3.0), &model(20, 2.4)).unwrap();
        assert!(said.contains("predicted 3.0, is 2.4 (of 20 MiB held): the pages"), "{said}");
        assert!(deviation(&prediction(3.0), &model(20, 3.9)).unwrap().contains("more room"));
    }

    #[test]
    fn a_small_deviation_or_a_small_sample_is_silence() {
        assert_eq!(deviation(&prediction(3.0), &model(20, 2.6)), None);
        assert_eq!(deviation(&prediction(3.0), &model(15, 1.0)), None);
        assert_eq!(deviation(&prediction(3.0), &Model::default()), None);
        assert_eq!(deviation(&prediction(0.0), &model(20, 2.0)), None);
    }

    #[test]
    fn it_is_said_once_an_hour() {
        let mut check = Check::default();
        let mut compare = |now| check.compare(&prediction(3.0), &model(20, 2.0), now).is_some();
        assert_eq!(
            [0, 10_000, 3_599_999, 3_600_000, 3_600_001].map(&mut compare),
            [true, false, false, true, false]
        );
    }
}
