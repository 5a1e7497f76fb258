//! Collects samples as tidy rows: one row for each variant, condition and metric.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::report::{Row, median};

/// The conditions of a row.
pub type Params = BTreeMap<String, Value>;

/// The rows so far.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    rows: Vec<Row>,
    /// The commit of what is added, if it is not the report's.
    commit: String,
}

impl Rows {
    /// What is added from now on is of this commit.
    pub fn of_commit(&mut self, commit: &str) {
        commit.clone_into(&mut self.commit);
    }

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
        let at = self.rows.iter().position(same).unwrap_or_else(|| {
            self.rows.push(Row::new(variant, params, metric, unit, Vec::new()));
            self.rows.len() - 1
        });
        let row = &mut self.rows[at];
        let before = row.samples.len();
        row.samples.extend(samples);
        let added = Some(row.samples.len() - before).filter(|count| *count > 0);
        row.runs.extend(added);
        if added.is_some() {
            name_commit(row, &self.commit);
        }
    }

    /// Adds all runs of `other` at the end.
    pub fn merge(&mut self, other: Self) {
        for row in other.rows {
            self.of_commit(&row.commit);
            let mut samples = row.samples.into_iter();
            for count in row.runs {
                self.add(&row.variant, &row.params, &row.metric, &row.unit, samples.by_ref().take(count));
            }
        }
    }

    /// The rows with their medians, without those that have no sample.
    pub fn done(mut self) -> Vec<Row> {
        self.rows.retain(|row| !row.samples.is_empty());
        for row in &mut self.rows {
            row.median = median(&row.samples);
            if row.runs.iter().all(|count| *count == 1) {
                row.runs.clear();
            }
        }
        self.rows
    }
}

/// A row of runs of several commits names each once.
fn name_commit(row: &mut Row, commit: &str) {
    if !row.commit.split(' ').any(|known| known == commit) {
        row.commit = format!("{} {commit}", row.commit).trim().to_owned();
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
    fn a_row_names_the_commits_of_its_runs_once() {
        let mut rows = Rows::default();
        for commit in ["a", "b", "a"] {
            rows.of_commit(commit);
            rows.add("eke", &params([]), "page", "s", [1.0]);
        }
        rows.add("eke", &params([]), "total", "s", []);
        assert_eq!(rows.done()[0].commit, "a b");
    }

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
