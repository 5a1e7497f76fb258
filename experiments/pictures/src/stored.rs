//! Results in `docs/results`.

use std::path::Path;

use anyhow::{Context, Result};
use eke_results::report::{Report, Row, saved};

/// One metric of a stored result, under one condition.
#[derive(Debug, Clone, Copy)]
pub struct Stored {
    /// The file.
    pub file: &'static str,
    /// The metric in it.
    pub metric: &'static str,
    /// The parameters of its rows, as text.
    pub conditions: &'static [(&'static str, &'static str)],
}

impl Stored {
    /// The report with only these rows, of these variants in this order.
    ///
    /// # Errors
    /// The file cannot be read, or has no such rows.
    pub fn report(&self, results: &Path, variants: &[&str]) -> Result<Report> {
        let file = results.join(self.file);
        let text =
            std::fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))?;
        let mut report = saved::parse(&text).with_context(|| file.display().to_string())?;
        let rows = variants.iter().map(|variant| self.row(&report, variant)).collect::<Result<_>>()?;
        report.rows = rows;
        Ok(report)
    }

    /// The row of one variant, without parameters: no other row has to be distinguished from it.
    fn row(&self, report: &Report, variant: &str) -> Result<Row> {
        let holds = |row: &Row| {
            let is =
                |(key, value): &(&str, &str)| row.params.get(*key).is_some_and(|v| v.as_str() == Some(value));
            row.variant == variant && row.metric == self.metric && self.conditions.iter().all(is)
        };
        let found = report.rows.iter().find(|row| holds(row));
        let found =
            found.with_context(|| format!("{} has no \"{}\" of {variant}", self.file, self.metric))?;
        Ok(Row { params: Default::default(), ..found.clone() })
    }
}
