//! Is a difference between two rows more than chance?

use eke_statistics::{median, range, ratio_of_medians};

use super::Row;

/// With fewer runs a bootstrap interval is far too narrow; then only runs that do not overlap count, and the words say how many they were.
pub const ENOUGH_RUNS: usize = 5;

/// This share of the best counts as equally good.
pub const AS_GOOD: f64 = 0.95;

/// What the runs of two rows say about their difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Evidence {
    /// A result of before November 2026: its samples are pooled, and nobody knows which run they are of.
    Pooled,
    /// Fewer runs than [`ENOUGH_RUNS`] of one of the two.
    Few {
        /// The fewer runs of the two.
        runs: usize,
        /// Do the runs of the two overlap? Never for one run, whose spread is unknown.
        overlap: bool,
    },
    /// The interval of the ratio of the two medians.
    Interval {
        /// Its lower end.
        low: f64,
        /// Its upper end.
        high: f64,
        /// Is it beyond 1 by more than the noise?
        clear: bool,
    },
}

/// Compares `row` with `reference` by the medians of their runs: times of single requests of one run depend on each other. `comparisons` is the
/// number of comparisons in which chance could have won: the interval of 95 % is widened for all of them together (Bonferroni). `noise` is the
/// relative difference of an arm and its repetition (A/A), 0 without one.
pub fn evidence(row: &Row, reference: &Row, comparisons: usize, noise: f64) -> Evidence {
    let (Some(a), Some(b)) = (by_run(row), by_run(reference)) else { return Evidence::Pooled };
    let runs = a.len().min(b.len());
    let share = 1.0 - 0.05 / comparisons.max(1) as f64;
    let interval = (runs >= ENOUGH_RUNS).then(|| ratio_of_medians(&a, &b, share, 1));
    let Some((low, high)) = interval.flatten() else {
        let ((a_low, a_high), (b_low, b_high)) = (range(&a), range(&b));
        return Evidence::Few { runs, overlap: runs > 1 && a_low <= b_high && b_low <= a_high };
    };
    Evidence::Interval { low, high, clear: low > 1.0 + noise || high < 1.0 - noise }
}

/// How good a choice is at the least beside the best, both by rates: the lower end of the 95 % interval of the ratio of their medians. `None` without
/// runs.
pub fn least_of_the_best(choice: &[f64], best: &[f64]) -> Option<f64> {
    ratio_of_medians(choice, best, 0.95, 1).map(|(low, _)| low)
}

/// The median of each run. `None` if nobody knows which run a sample is of.
fn by_run(row: &Row) -> Option<Vec<f64>> {
    if row.runs.is_empty() {
        return (!row.is_distribution()).then(|| row.samples.clone());
    }
    let mut rest = &row.samples[..];
    row.runs
        .iter()
        .map(|count| {
            let (run, others) = rest.split_at_checked(*count)?;
            rest = others;
            median(run)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn row(runs: &[&[f64]]) -> Row {
        let samples = runs.concat();
        Row {
            runs: runs.iter().map(|run| run.len()).collect(),
            ..Row::new("", &BTreeMap::new(), "", "", samples)
        }
    }

    fn plain(samples: &[f64]) -> Row {
        Row::new("", &BTreeMap::new(), "", "", samples.to_vec())
    }

    #[test]
    fn many_samples_of_few_runs_are_few_runs() {
        let (fast, slow) = (row(&[&[1.0; 40], &[1.4; 40]]), row(&[&[1.2; 40], &[1.3; 40]]));
        assert_eq!(evidence(&fast, &slow, 1, 0.0), Evidence::Few { runs: 2, overlap: true });
        assert_eq!(evidence(&plain(&[1.0]), &slow, 1, 0.0), Evidence::Few { runs: 1, overlap: false });
        assert_eq!(evidence(&plain(&[1.0; 21]), &slow, 1, 0.0), Evidence::Pooled);
    }

    #[test]
    fn enough_runs_have_an_interval_that_must_be_beyond_the_noise() {
        let (a, b) = (plain(&[10.0, 11.0, 10.5, 10.2, 10.8]), plain(&[9.0, 9.5, 9.2, 9.1, 9.4]));
        let clear = |noise| match evidence(&a, &b, 3, noise) {
            Evidence::Interval { low, high, clear } => {
                assert!(1.0 < low && low < high && high < 1.3, "{low} to {high}");
                clear
            }
            other => panic!("{other:?}"),
        };
        assert!(clear(0.0) && !clear(0.15));
    }

    #[test]
    fn the_more_comparisons_the_wider_the_interval() {
        let (a, b) = (plain(&[10.0, 12.0, 11.0, 9.5, 13.0, 10.5]), plain(&[9.0, 10.0, 9.2, 9.1, 11.4, 9.9]));
        let width = |comparisons| match evidence(&a, &b, comparisons, 0.0) {
            Evidence::Interval { low, high, .. } => high - low,
            other => panic!("{other:?}"),
        };
        assert!(width(1) < width(20));
    }

    #[test]
    fn the_least_of_a_noisy_choice_is_less_than_its_median_says() {
        let (best, steady) = ([100.0, 101.0, 99.0, 100.5, 99.5], [98.0, 98.5, 98.2, 97.9, 98.1]);
        let noisy = [98.0, 120.0, 70.0, 99.0, 80.0];
        assert!(least_of_the_best(&steady, &best).unwrap() > AS_GOOD);
        assert!(least_of_the_best(&noisy, &best).unwrap() < AS_GOOD);
        assert_eq!(least_of_the_best(&[], &best), None);
    }

    #[test]
    fn runs_that_do_not_fit_the_samples_are_unknown() {
        let foreign = Row { runs: vec![3, usize::MAX], ..plain(&[1.0, 2.0]) };
        assert_eq!(evidence(&foreign, &plain(&[1.0]), 1, 0.0), Evidence::Pooled);
    }
}
