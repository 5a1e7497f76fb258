//! Is eke's choice among the best? Pure.

use eke_link::figures::{median, overlap};

use super::trial::{Chosen, Sampled, Trial};

/// Nearer than this to the best is as good.
const AS_GOOD: f64 = 0.95;
/// What the study's thin client gained by RC4: 45 MB/s instead of 30.
pub const RC4_GAIN: f64 = 1.5;

/// How eke's choice stands beside the best allowed one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Standing<'a> {
    /// Within 5 %, or the best itself.
    AsGood(&'a Sampled, f64),
    /// Further, but the 95 % intervals overlap.
    ByChance(&'a Sampled, f64),
    /// Worse.
    Worse(&'a Sampled, f64),
    /// It is not among those that were measured.
    Unknown,
}

impl Standing<'_> {
    /// Is the promise kept?
    pub fn holds(&self) -> bool {
        matches!(self, Self::AsGood(..) | Self::ByChance(..))
    }

    /// For a table.
    pub fn words(&self) -> String {
        match self {
            Self::AsGood(best, share) if *share >= 1.0 => format!("the best, {}", best.suite),
            Self::AsGood(best, share) => {
                format!("within 5 % of the best, {} ({:.1} %)", best.suite, 100.0 * share)
            }
            Self::ByChance(best, share) => {
                format!("{:.1} % of the best, {}; their 95 % intervals overlap", 100.0 * share, best.suite)
            }
            Self::Worse(best, share) => {
                format!("NOT as good: {:.1} % of the best, {}", 100.0 * share, best.suite)
            }
            Self::Unknown => "not measured exhaustively".to_owned(),
        }
    }
}

/// See the module.
pub fn standing<'a>(trial: &'a Trial, chosen: &Chosen) -> Standing<'a> {
    let allowed = trial.sampled.iter().filter(|s| s.is_allowed);
    let best = allowed.max_by(|a, b| a.rate().total_cmp(&b.rate()));
    let ours = trial.sampled.iter().find(|s| s.suite == chosen.suite);
    let (Some(best), Some(ours)) = (best, ours) else { return Standing::Unknown };
    let share = ours.rate() / best.rate().max(1e-9);
    match share {
        s if s >= AS_GOOD => Standing::AsGood(best, share),
        _ if overlap(&ours.rates(), &best.rates()) => Standing::ByChance(best, share),
        _ => Standing::Worse(best, share),
    }
}

/// How many times the study's cipher's rate eke's choice has, to here.
pub fn beside_the_study(trial: &Trial, chosen: &Chosen) -> Option<f64> {
    let study = trial.sampled.iter().find(|s| !s.is_allowed)?;
    let ours = trial.sampled.iter().find(|s| s.suite == chosen.suite)?;
    Some(ours.rate() / study.rate().max(1e-9))
}

/// How many times less CPU eke's choice needs than the study's cipher, at the end that needs more.
pub fn less_cpu(trial: &Trial, chosen: &Chosen) -> Option<f64> {
    let study = trial.sampled.iter().find(|s| !s.is_allowed)?;
    let ours = trial.sampled.iter().find(|s| s.suite == chosen.suite)?;
    let (study, ours) = (median(&study.bound_per_mb), median(&ours.bound_per_mb));
    (study > 0.0 && ours > 0.0).then(|| study / ours)
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
    fn near_by_chance_and_worse() {
        let trial = Trial {
            sampled: vec![
                sampled("study", false, [30.0, 30.0, 30.0]),
                sampled("best", true, [100.0, 101.0, 99.0]),
                sampled("near", true, [96.0, 97.0, 96.5]),
                sampled("noisy", true, [90.0, 104.0, 80.0]),
                sampled("slow", true, [60.0, 61.0, 59.0]),
            ],
            chosen: vec![],
            frames: vec![],
            no_frames: None,
        };
        for (name, holds, words) in [
            ("best", true, "the best, best"),
            ("near", true, "within 5 %"),
            ("noisy", true, "intervals overlap"),
            ("slow", false, "NOT as good: 60.0 %"),
            ("other", false, "not measured"),
        ] {
            let standing = standing(&trial, &chosen(name));
            assert_eq!(standing.holds(), holds, "{name}");
            assert!(standing.words().contains(words), "{}", standing.words());
        }
        assert_eq!(beside_the_study(&trial, &chosen("slow")), Some(2.0));
        assert_eq!(less_cpu(&trial, &chosen("slow")), Some(2.0));
    }
}
