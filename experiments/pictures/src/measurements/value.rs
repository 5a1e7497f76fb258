//! A measurement's value in the stored results.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use eke_results::report::{Report, Row, saved};

use super::claims::{Comparison, Measurement, Place, Stat};
use super::passage::passage;
use crate::cast::Cast;

/// `docs/results`, each file read once.
#[derive(Debug)]
pub struct Results {
    directory: PathBuf,
    reports: BTreeMap<String, Report>,
}

impl Results {
    /// Those of a directory.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory, reports: BTreeMap::new() }
    }

    /// The value of a measurement, in the unit of the text.
    ///
    /// # Errors
    /// No result has it, or more than one row does.
    pub fn value(&mut self, measurement: &Measurement, common: &Place) -> Result<f64> {
        let place = measurement.place.within(common);
        let value = self.at(&place, measurement.stat)? * measurement.times;
        let Some(other) = &measurement.over else { return Ok(value) };
        let other = self.value(other, &place)?;
        let ratio = value / other;
        Ok(match measurement.comparison {
            Comparison::Ratio => ratio,
            Comparison::Percent => ratio * 100.0,
            Comparison::PercentLess => (1.0 - ratio) * 100.0,
            Comparison::PercentMore => (ratio - 1.0) * 100.0,
            Comparison::Less => other - value,
        })
    }

    fn at(&mut self, place: &Place, stat: Stat) -> Result<f64> {
        let file = place.file.as_deref().context("no file is named")?;
        if file.ends_with(".cast") {
            return self.length_s(file).with_context(|| file.to_owned());
        }
        let report = self.report(file)?;
        match place {
            Place { cell: Some(cell), .. } => in_table(report, cell),
            Place { note: Some(note), .. } => in_note(report, note),
            _ => in_rows(report, place, stat),
        }
        .with_context(|| format!("{file}: {place:?}"))
    }

    fn length_s(&self, file: &str) -> Result<f64> {
        let text = std::fs::read_to_string(self.directory.join(file))?;
        Cast::parse(&text)?.length_s().context("an empty recording")
    }

    fn report(&mut self, file: &str) -> Result<&Report> {
        if !self.reports.contains_key(file) {
            let path = self.directory.join(file);
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("{} cannot be read", path.display()))?;
            let report = saved::parse(&text).with_context(|| path.display().to_string())?;
            self.reports.insert(file.to_owned(), report);
        }
        self.reports.get(file).context("just inserted")
    }
}

fn in_rows(report: &Report, place: &Place, stat: Stat) -> Result<f64> {
    let has_params = |row: &Row| {
        place.params.iter().all(|(key, value)| {
            row.params
                .get(key)
                .is_some_and(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned) == *value)
        })
    };
    let is = |named: &Option<String>, own: &str| named.as_deref().is_none_or(|name| name == own);
    let rows: Vec<&Row> = report
        .rows
        .iter()
        .filter(|row| is(&place.metric, &row.metric) && is(&place.variant, &row.variant) && has_params(row))
        .collect();
    let medians = rows.iter().map(|row| row.median);
    match (stat, &rows[..]) {
        (Stat::LeastOfRows, _) => medians.reduce(f64::min).context("no row is so"),
        (Stat::MostOfRows, _) => medians.reduce(f64::max).context("no row is so"),
        (_, [row]) => of_row(row, stat),
        _ => bail!("{} rows are so, not one; name metric, variant and params", rows.len()),
    }
}

fn of_row(row: &Row, stat: Stat) -> Result<f64> {
    let samples = row.samples.iter().copied();
    match stat {
        Stat::Least => samples.reduce(f64::min).context("no sample"),
        Stat::Most => samples.reduce(f64::max).context("no sample"),
        Stat::Count => Ok(row.samples.len() as f64),
        Stat::Median | Stat::LeastOfRows | Stat::MostOfRows => Ok(row.median),
    }
}

/// The number of the one note or title that has the passage.
fn in_note(report: &Report, note: &str) -> Result<f64> {
    let pattern = passage(note)?;
    ensure!(pattern.captures_len() == 2, "the passage of a note has one {{}}");
    let titles = report.tables.iter().map(|table| &table.title);
    let texts = report.notes.iter().chain(titles);
    let found: Vec<_> = texts.flat_map(|text| pattern.captures_iter(text)).collect();
    let [one] = &found[..] else { bail!("notes have this {} times, not once", found.len()) };
    one[1].replace(',', "").parse().with_context(|| one[0].to_owned())
}

fn in_table(report: &Report, [title, line, column]: &[String; 3]) -> Result<f64> {
    let table = report.tables.iter().find(|table| table.title.starts_with(title)).context("no such table")?;
    let line = table.lines.iter().find(|text| text.starts_with(line)).context("no such line")?;
    let nth = table.columns.iter().position(|head| head == column).context("no such column")?;
    let cell = line.split('\t').nth(nth).context("the line has no such column")?;
    let number = cell.split_whitespace().next().unwrap_or_default();
    number.parse().with_context(|| format!("\"{cell}\" does not begin with a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(variant: &str, median: f64) -> Row {
        Row { variant: variant.into(), metric: "start".into(), median, ..Default::default() }
    }

    #[test]
    fn a_measurement_is_of_one_row_or_the_extreme_of_several() {
        let report = Report { rows: vec![row("a", 3.0), row("b", 5.0)], ..Default::default() };
        let of = |variant: Option<&str>, stat| {
            let place = Place { variant: variant.map(Into::into), ..Default::default() };
            in_rows(&report, &place, stat)
        };
        assert_eq!(of(Some("b"), Stat::Median).unwrap(), 5.0);
        assert_eq!(of(None, Stat::LeastOfRows).unwrap(), 3.0);
        assert_eq!(of(None, Stat::MostOfRows).unwrap(), 5.0);
        assert!(of(None, Stat::Median).is_err() && of(Some("c"), Stat::MostOfRows).is_err());
    }

    #[test]
    fn a_note_has_its_passage_once() {
        let notes = vec!["slower in 671 of 1,600 cells".into(), "faster in 3 of 4 cells".into()];
        let report = Report { notes, ..Default::default() };
        assert_eq!(in_note(&report, "slower in {} of").unwrap(), 671.0);
        assert_eq!(in_note(&report, "671 of {} cells").unwrap(), 1600.0);
        for wrong in ["in {} of", "least in {} of", "slower in", "in {} of {}"] {
            assert!(in_note(&report, wrong).is_err(), "{wrong}");
        }
    }
}
