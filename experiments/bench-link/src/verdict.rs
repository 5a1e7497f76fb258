//! Whether eke's choice is among the best. Pure.

use eke_link::throughput::median;
use eke_results::report::evidence::{AS_GOOD, least_of_the_best};

use super::trial::{Chosen, Sampled, Trial};

/// The gain of the study's thin client by RC4: 45 MB/s instead of 30.
pub const RC4_GAIN: f64 = 1.5;

/// eke's choice compared with the best allowed cipher, and its share of the best rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Standing<'a> {
    /// The best itself, or at least 95 % of it by the lower end of the ratio's interval.
    AsGood(&'a Sampled, f64),
    /// At least 95 % of it by the medians, which can be chance.
    NotShown(&'a Sampled, f64),
    /// Slower.
    Worse(&'a Sampled, f64),
    /// The choice was not measured exhaustively.
    Unknown,
}

impl Standing<'_> {
    /// Whether the choice is among the best.
    pub fn is_good(&self) -> bool {
        matches!(self, Self::AsGood(..))
    }

    /// The text for a table.
    pub fn text(&self) -> String {
        match self {
            Self::AsGood(best, share) if *share >= 1.0 => format!("the best, {}", best.suite),
            Self::AsGood(best, share) => {
                format!("among the best: {:.1} % of {}", 100.0 * share, best.suite)
            }
            Self::NotShown(best, share) => {
                format!(
                    "{:.1} % of the best, {}; that it is among the best is not shown",
                    100.0 * share,
                    best.suite
                )
            }
            Self::Worse(best, share) => {
                format!("NOT as good: {:.1} % of the best, {}", 100.0 * share, best.suite)
            }
            Self::Unknown => "not measured exhaustively".to_owned(),
        }
    }
}

/// Compares eke's choice with the best allowed cipher.
pub fn standing<'a>(trial: &'a Trial, chosen: &Chosen) -> Standing<'a> {
    let allowed = trial.sampled.iter().filter(|s| s.is_allowed);
    let best = allowed.max_by(|a, b| a.rate().total_cmp(&b.rate()));
    let choice = trial.sampled.iter().find(|s| s.suite == chosen.suite);
    let (Some(best), Some(choice)) = (best, choice) else { return Standing::Unknown };
    let share = choice.rate() / best.rate().max(1e-9);
    let least = least_of_the_best(&choice.rates(), &best.rates());
    match share {
        s if s >= 1.0 || least.is_some_and(|least| least >= AS_GOOD) => Standing::AsGood(best, share),
        s if s >= AS_GOOD => Standing::NotShown(best, share),
        _ => Standing::Worse(best, share),
    }
}

/// The rate of eke's choice divided by the rate of the study's cipher.
pub fn beside_the_study(trial: &Trial, chosen: &Chosen) -> Option<f64> {
    let study = trial.sampled.iter().find(|s| !s.is_allowed)?;
    let choice = trial.sampled.iter().find(|s| s.suite == chosen.suite)?;
    Some(choice.rate() / study.rate().max(1e-9))
}

/// The CPU time of the study's cipher divided by that of eke's choice, at the end that needs more.
pub fn less_cpu(trial: &Trial, chosen: &Chosen) -> Option<f64> {
    let study = trial.sampled.iter().find(|s| !s.is_allowed)?;
    let choice = trial.sampled.iter().find(|s| s.suite == chosen.suite)?;
    let (study, choice) = (median(&study.bound_per_mb), median(&choice.bound_per_mb));
    (study > 0.0 && choice > 0.0).then(|| study / choice)
}

#[cfg(test)]
mod tests {
    use eke_link::Suite;
    use eke_link::decide::Limit;

    use super::*;

    fn sampled(name: &str, is_allowed: bool, rates: [f64; 3]) -> Sampled {
        Sampled {
            suite: Suite::new(name, None),
            is_allowed,
            to_here: rates.to_vec(),
            to_there: rates.to_vec(),
            bound_per_mb: rates.iter().map(|r| 0.5 / r).collect(),
        }
    }

    fn chosen(name: &str) -> Chosen {
        Chosen { suite: Suite::new(name, None), limit: Limit::Link, seconds: 1.0, bytes: 1 }
    }

    #[test]
    fn standings_are_good_by_chance_and_worse() {
        let trial = Trial {
            sampled: vec![
                sampled("study", false, [30.0, 30.0, 30.0]),
                sampled("best", true, [100.0, 101.0, 99.0]),
                sampled("near", true, [98.0, 98.2, 98.1]),
                sampled("noisy", true, [97.0, 104.0, 80.0]),
                sampled("slow", true, [60.0, 61.0, 59.0]),
            ],
            chosen: vec![],
            frames: vec![],
            no_frames: None,
        };
        for (name, is_good, text) in [
            ("best", true, "the best, best"),
            ("near", true, "among the best: 98.1 %"),
            ("noisy", false, "not shown"),
            ("slow", false, "NOT as good: 60.0 %"),
            ("other", false, "not measured"),
        ] {
            let standing = standing(&trial, &chosen(name));
            assert_eq!(standing.is_good(), is_good, "{name}");
            assert!(standing.text().contains(text), "{}", standing.text());
        }
        assert_eq!(beside_the_study(&trial, &chosen("slow")), Some(2.0));
        assert_eq!(less_cpu(&trial, &chosen("slow")), Some(2.0));
    }
}
