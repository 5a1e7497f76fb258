//! Collects samples as tidy rows: one row for each variant, condition and metric.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::report::{Row, median};

/// The conditions of a row.
pub type Params = BTreeMap<String, Value>;

/// The rows so far.
#[derive(Debug, Clone, Default)]
pub struct Rows(Vec<Row>);

impl Rows {
    /// Adds the samples of one run of a variant, in order.
    pub fn add(
        &mut self,
        variant: &str,
        params: &Params,
        metric: &str,
        unit: &str,
        samples: impl IntoIterator<Item = f64>,
    ) {
        let same = |row: &Row| row.variant == variant && row.params == *params && row.metric == metric;
        let at = self.0.iter().position(same).unwrap_or_else(|| {
            self.0.push(Row::new(variant, params, metric, unit, Vec::new()));
            self.0.len() - 1
        });
        let row = &mut self.0[at];
        let before = row.samples.len();
        row.samples.extend(samples);
        row.runs.extend(Some(row.samples.len() - before).filter(|count| *count > 0));
    }

    /// Adds all runs of `other` at the end.
    pub fn merge(&mut self, other: Self) {
        for row in other.0 {
            let mut samples = row.samples.into_iter();
            for count in row.runs {
                self.add(&row.variant, &row.params, &row.metric, &row.unit, samples.by_ref().take(count));
            }
        }
    }

    /// The rows with their medians, without those that have no sample.
    pub fn done(mut self) -> Vec<Row> {
        self.0.retain(|row| !row.samples.is_empty());
        for row in &mut self.0 {
            row.median = median(&row.samples);
            if row.runs.iter().all(|count| *count == 1) {
                row.runs.clear();
            }
        }
        self.0
    }
}

/// Conditions from pairs.
pub fn params<const N: usize>(pairs: [(&str, Value); N]) -> Params {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_of_one_condition_are_one_row() {
        let mut rows = Rows::default();
        let (a, b) = (params([("document", "A".into())]), params([("document", "B".into())]));
        for seconds in [3.0, 1.0, 2.0] {
            rows.add("eke", &a, "page", "s", [seconds]);
        }
        rows.add("eke", &b, "page", "s", [9.0, 8.0]);
        rows.add("eke", &b, "total", "s", []);
        let mut twice = rows.clone();
        twice.merge(rows.clone());
        assert_eq!(twice.done()[0].samples, [3.0, 1.0, 2.0, 3.0, 1.0, 2.0]);
        let rows = rows.done();
        assert_eq!((rows[0].runs.as_slice(), rows[1].runs.as_slice()), (&[][..], &[2][..]));
        let seen: Vec<_> = rows.iter().map(|r| (r.samples.len(), r.median)).collect();
        assert_eq!(seen, [(3, 2.0), (2, 8.5)]);
    }
}
