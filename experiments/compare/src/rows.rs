//! Compares the runs of two revisions, one row per metric.

use std::collections::BTreeMap;

use eke_statistics::median;

use crate::report::{Better, Report, Row};

/// One metric in both revisions.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// Metric, variant and conditions.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// The median of the base's runs.
    pub base: f64,
    /// The median of the new revision's runs.
    pub new: f64,
    /// Relative spread of the runs of one revision (largest by smallest, less one), the larger of both. `None` with one
    /// run each.
    pub noise: Option<f64>,
    /// The conclusion.
    pub change: Change,
}

impl Compared {
    /// New divided by base.
    pub fn ratio(&self) -> f64 {
        self.new / self.base
    }
}

/// The conclusion from a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// No larger than the noise, or the noise is unknown.
    None,
    /// Clearly in the good direction.
    Better,
    /// Clearly in the bad direction.
    Worse,
}

/// The comparison of two revisions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparison {
    /// Rows that both revisions have, in the base's order.
    pub rows: Vec<Compared>,
    /// Names of rows that some runs lack.
    pub missing: Vec<String>,
}

/// Compares runs of one experiment.
///
/// # Errors
/// No run on one side, or runs of different experiments.
pub fn compare(base: &[Report], new: &[Report]) -> Result<Comparison, String> {
    let (Some(first), false) = (base.first(), new.is_empty()) else {
        return Err("compare needs at least one report of the base and one of the new revision".into());
    };
    if let Some(other) = base.iter().chain(new).find(|run| run.experiment != first.experiment) {
        let (one, two) = (&first.experiment, &other.experiment);
        return Err(format!("the reports are of different experiments: {one} and {two}"));
    }
    let mut comparison = Comparison::default();
    let (base, new) = (Runs::of(base), Runs::of(new));
    let only_new = new.names.iter().filter(|name| !base.names.contains(name));
    for (name, unit) in base.names.iter().chain(only_new) {
        match (base.values(&name.key), new.values(&name.key)) {
            (Some(base), Some(new)) => {
                comparison.rows.push(row(name, unit, (&base, &new), better(first, &name.metric)));
            }
            _ => comparison.missing.push(name.key.clone()),
        }
    }
    Ok(comparison)
}

/// A row's display name and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Name {
    key: String,
    metric: String,
}

/// All runs of one revision.
struct Runs {
    count: usize,
    names: Vec<(Name, String)>,
    medians: BTreeMap<String, Vec<f64>>,
}

impl Runs {
    fn of(runs: &[Report]) -> Self {
        let mut all = Self { count: runs.len(), names: Vec::new(), medians: BTreeMap::new() };
        runs.iter().flat_map(|run| &run.rows).for_each(|row| all.add(row));
        all
    }

    fn add(&mut self, row: &Row) {
        let key = row.key();
        if !self.medians.contains_key(&key) {
            self.names.push((Name { key: key.clone(), metric: row.metric.clone() }, row.unit.clone()));
        }
        self.medians.entry(key).or_default().push(row.median);
    }

    /// The values of a row in every run; `None` if a run lacks it.
    fn values(&self, key: &str) -> Option<Vec<f64>> {
        self.medians.get(key).filter(|values| values.len() == self.count).cloned()
    }
}

fn better(report: &Report, metric: &str) -> Better {
    report.metrics.iter().find(|m| m.name == metric).map(|m| m.better).unwrap_or_default()
}

fn row(name: &Name, unit: &str, (base, new): (&[f64], &[f64]), better: Better) -> Compared {
    let middle = |values: &[f64]| median(values).unwrap_or(f64::NAN);
    let noise = [spread(base), spread(new)].into_iter().flatten().reduce(f64::max);
    Compared {
        name: name.key.clone(),
        unit: unit.to_owned(),
        base: middle(base),
        new: middle(new),
        noise,
        change: change(base, new, noise, better),
    }
}

/// The largest by the smallest, less one; `None` for a single run, or if that is no number.
fn spread(values: &[f64]) -> Option<f64> {
    let (low, high) = (least(values), most(values));
    let spread = if high == low { 0.0 } else { high / low - 1.0 };
    (values.len() > 1 && spread.is_finite() && spread >= 0.0).then_some(spread)
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// Clear if all runs of one revision are beyond all runs of the other by more than the noise.
fn change(base: &[f64], new: &[f64], noise: Option<f64>, better: Better) -> Change {
    let Some(noise) = noise else { return Change::None };
    let is_more = least(new) > most(base) * (1.0 + noise);
    let is_less = most(new) * (1.0 + noise) < least(base);
    match (is_more, is_less, better) {
        (false, false, _) => Change::None,
        (true, _, Better::More) | (_, true, Better::Less) => Change::Better,
        _ => Change::Worse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Metric;

    fn runs(medians: &[f64]) -> Vec<Report> {
        let report = |median: &f64| Report {
            experiment: "reads".into(),
            metrics: vec![Metric { name: "throughput".into(), better: Better::More }],
            rows: vec![Row {
                variant: "eke".into(),
                metric: "throughput".into(),
                unit: "MB/s".into(),
                median: *median,
                ..Row::default()
            }],
        };
        medians.iter().map(report).collect()
    }

    fn one(base: &[f64], new: &[f64]) -> Compared {
        compare(&runs(base), &runs(new)).unwrap().rows.remove(0)
    }

    #[test]
    fn a_change_is_clear_beyond_the_noise_of_both() {
        let row = one(&[100.0, 104.0], &[130.0, 126.0]);
        assert_eq!((row.base, row.new, row.change), (102.0, 128.0, Change::Better));
        assert!((row.noise.unwrap() - 0.04).abs() < 1e-9 && (row.ratio() - 1.2549).abs() < 1e-3, "{row:?}");
        assert_eq!(one(&[100.0, 104.0], &[80.0, 82.0]).change, Change::Worse);
    }

    #[test]
    fn a_difference_within_the_noise_is_no_change() {
        assert_eq!(one(&[100.0, 120.0], &[125.0, 130.0]).change, Change::None, "within the base's noise");
        assert_eq!(one(&[100.0, 101.0], &[90.0, 110.0]).change, Change::None, "on both sides");
        assert_eq!(one(&[100.0, 100.0], &[100.0, 100.0]).noise, Some(0.0));
    }

    #[test]
    fn one_run_each_has_no_noise_and_proves_nothing() {
        let row = one(&[100.0], &[200.0]);
        assert_eq!((row.noise, row.change), (None, Change::None));
    }

    #[test]
    fn less_is_better_by_default() {
        let mut sides = [runs(&[10.0, 10.1]), runs(&[5.0, 5.1])];
        sides.iter_mut().flatten().for_each(|run| run.metrics.clear());
        assert_eq!(compare(&sides[0], &sides[1]).unwrap().rows[0].change, Change::Better);
    }

    #[test]
    fn a_row_that_one_run_lacks_is_named_and_not_compared() {
        let mut new = runs(&[1.0, 2.0]);
        new[1].rows[0].variant = "other".into();
        let comparison = compare(&runs(&[1.0, 2.0]), &new).unwrap();
        assert_eq!(comparison.rows, []);
        assert_eq!(comparison.missing, ["throughput, eke", "throughput, other"]);
    }

    #[test]
    fn other_experiments_and_empty_sides_are_refused() {
        let mut other = runs(&[1.0]);
        other[0].experiment = "store".into();
        let error = compare(&runs(&[1.0]), &other).unwrap_err();
        assert_eq!(error, "the reports are of different experiments: reads and store");
        assert!(compare(&[], &runs(&[1.0])).unwrap_err().contains("one report of the base"));
    }
}
