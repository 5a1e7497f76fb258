//! What was predicted beside what came.

use std::collections::BTreeMap;

use eke_statistics::{median, quantile};

use super::{DataTable, Report, Row};

/// The variant whose rows are predictions of the rows of others.
const PREDICTED: &str = "as predicted";
/// The columns of a grid's table, in this order: throughput and 99th percentile beside the reference, then both by the model.
const GRID: [&str; 4] = ["eke", "p99", "model", "p99"];
/// Above this error a prediction is not a good one.
pub const GOOD: f64 = 0.1;

/// One prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// What was predicted: the metric.
    pub metric: String,
    /// The value that was predicted.
    pub predicted: f64,
    /// The median of what came.
    pub came: f64,
}

impl Prediction {
    /// How far what came was from the prediction, as a part of what came: 0.1 is 10 %. `None` if nothing came.
    pub fn error(&self) -> Option<f64> {
        (self.came != 0.0).then(|| (self.predicted / self.came - 1.0).abs())
    }
}

/// The errors of many predictions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    /// The number of predictions.
    pub count: usize,
    /// The median error.
    pub median: f64,
    /// The worst.
    pub worst: f64,
    /// How many are above [`GOOD`].
    pub bad: usize,
}

/// All predictions of a report: its rows', those of an arm "as predicted", and those of a grid's table if its rows have none.
pub fn of(report: &Report) -> Vec<Prediction> {
    let mut all: Vec<Prediction> = report.rows.iter().filter_map(own).collect();
    if all.is_empty() {
        all.extend(report.rows.iter().filter_map(|row| beside(row, &report.rows)));
        all.extend(report.tables.iter().flat_map(grid));
    }
    all
}

/// Those of each metric.
pub fn by_metric(predictions: &[Prediction]) -> BTreeMap<&str, Errors> {
    let mut by: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for prediction in predictions {
        by.entry(&prediction.metric).or_default().extend(prediction.error());
    }
    by.into_iter().filter_map(|(metric, errors)| Some((metric, errors_of(&errors)?))).collect()
}

/// `None` without errors.
fn errors_of(errors: &[f64]) -> Option<Errors> {
    Some(Errors {
        count: errors.len(),
        median: median(errors)?,
        worst: quantile(errors, 1.0)?,
        bad: errors.iter().filter(|error| **error > GOOD).count(),
    })
}

fn own(row: &Row) -> Option<Prediction> {
    Some(Prediction { metric: row.metric.clone(), predicted: row.predicted?, came: row.median })
}

/// The prediction of a row by the arm "as predicted" under the same conditions.
fn beside(row: &Row, rows: &[Row]) -> Option<Prediction> {
    let is =
        |other: &&Row| other.variant == PREDICTED && other.metric == row.metric && other.params == row.params;
    let predicted = rows.iter().find(is).filter(|_| row.variant != PREDICTED)?.median;
    Some(Prediction { metric: row.metric.clone(), predicted, came: row.median })
}

/// Throughput and 99th percentile in each line of a grid's table, as parts of the reference's.
fn grid(table: &DataTable) -> Vec<Prediction> {
    let Some(first) = table.columns.windows(GRID.len()).position(|heads| heads == GRID) else {
        return Vec::new();
    };
    let of = |line: &String| -> Vec<Prediction> {
        let cells: Vec<Option<f64>> = line.split('\t').map(|cell| cell.parse().ok()).collect();
        let cell = |nth: usize| cells.get(first + nth).copied().flatten();
        let pair = |metric: &str, nth: usize| {
            Some(Prediction { metric: metric.into(), predicted: cell(nth + 2)?, came: cell(nth)? })
        };
        [pair("throughput", 0), pair("response time, 99th percentile", 1)].into_iter().flatten().collect()
    };
    table.lines.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_parts_of_what_came() {
        let of = |predicted, came| Prediction { metric: "reads".into(), predicted, came };
        let all = [of(9.0, 10.0), of(15.0, 10.0), of(10.0, 10.0), of(1.0, 0.0)];
        let errors = by_metric(&all)["reads"];
        assert_eq!((errors.count, errors.bad), (3, 1));
        assert!((errors.median - 0.1).abs() < 1e-9 && (errors.worst - 0.5).abs() < 1e-9, "{errors:?}");
        assert!(by_metric(&all[3..]).is_empty(), "nothing came");
    }

    #[test]
    fn a_row_has_its_prediction_or_another_arm_has_it() {
        let row = |variant: &str, value| Row::new(variant, &BTreeMap::new(), "started", "%", vec![value]);
        let arms = Report { rows: vec![row(PREDICTED, 60.0), row("eke", 80.0)], ..Report::default() };
        assert_eq!(of(&arms).iter().map(Prediction::error).collect::<Vec<_>>(), [Some(0.25)]);
        let rows = vec![row("ext4", 1.0), Row { predicted: Some(3.0), ..row("eke", 2.0) }];
        let own = Report { rows, ..Report::default() };
        assert_eq!(of(&own), [Prediction { metric: "started".into(), predicted: 3.0, came: 2.0 }]);
    }

    #[test]
    fn a_grid_has_two_predictions_in_a_line() {
        let columns = ["disk", "eke", "p99", "model", "p99", "best"].map(str::to_owned).to_vec();
        let lines = vec!["sd\t0.50\t2.00\t0.40\t1.00\text4".into(), "2008\t1.00\t-\t1.00\t-\text4".into()];
        let report = Report {
            tables: vec![DataTable { columns, lines, ..DataTable::default() }],
            ..Report::default()
        };
        let by: Vec<(String, f64)> =
            of(&report).into_iter().map(|p| (p.metric.clone(), p.error().unwrap())).collect();
        assert_eq!(by.len(), 3);
        assert!((by[0].1 - 0.2).abs() < 1e-9 && (by[1].1 - 0.5).abs() < 1e-9 && by[2].1 == 0.0, "{by:?}");
    }
}
