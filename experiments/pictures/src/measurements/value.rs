//! A measurement's value in the stored results.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use eke_results::report::evidence::{AS_GOOD, least_of_the_best};
use eke_results::report::groups::{groups, is_ours};
use eke_results::report::{Report, Row, predictions, saved};

use super::claims::{Among, Comparison, ErrorStat, Measurement, Place, Stat};
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
            Place { column: Some(column), .. } => in_column(report, column, stat),
            Place { note: Some(note), .. } => in_note(report, note),
            Place { prediction: Some(error), .. } => of_predictions(report, metric(place)?, *error),
            Place { among: Some(among), .. } => among_the_best(report, metric(place)?, *among),
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

fn metric(place: &Place) -> Result<&str> {
    place.metric.as_deref().context("no metric is named")
}

/// The errors of its predictions of one metric.
fn of_predictions(report: &Report, metric: &str, stat: ErrorStat) -> Result<f64> {
    let all = predictions::of(report);
    let errors = *predictions::by_metric(&all).get(metric).context("no prediction of this metric")?;
    Ok(match stat {
        ErrorStat::Count => errors.count as f64,
        ErrorStat::Median => 100.0 * errors.median,
        ErrorStat::Worst => 100.0 * errors.worst,
        ErrorStat::Bad => errors.bad as f64,
    })
}

/// In how many conditions of the metric eke is among the best, or all of them.
fn among_the_best(report: &Report, metric: &str, among: Among) -> Result<f64> {
    let mut count = 0;
    for group in groups(report).iter().filter(|group| group.metric.name == metric) {
        let ours = group.best_of(is_ours).context("no row of eke's")?.row;
        let best = group.best_peer(ours).context("nothing to compare eke with")?;
        let least = || least_of_the_best(&ours.samples, &best.samples).unwrap_or(0.0);
        let is_best = ours.median >= best.median || least() >= AS_GOOD;
        count += usize::from(matches!(among, Among::All) || is_best);
    }
    ensure!(count > 0, "no row of this metric");
    Ok(count as f64)
}

fn in_column(report: &Report, [title, column, other, begin]: &[String; 4], stat: Stat) -> Result<f64> {
    let table = report.tables.iter().find(|table| table.title.starts_with(title)).context("no such table")?;
    let nth = |name: &str| table.columns.iter().position(|head| head == name).context("no such column");
    let (nth, other) = (nth(column)?, nth(other)?);
    let cells = table.lines.iter().map(|line| line.split('\t').collect::<Vec<_>>());
    let cells = cells.filter(|cells| cells.get(other).is_some_and(|cell| cell.starts_with(begin)));
    let numbers: Vec<f64> = cells.filter_map(|cells| cells.get(nth)?.parse().ok()).collect();
    match stat {
        Stat::LeastOfRows => numbers.into_iter().reduce(f64::min).context("no line is so"),
        Stat::MostOfRows => numbers.into_iter().reduce(f64::max).context("no line is so"),
        Stat::Count => Ok(numbers.len() as f64),
        _ => bail!("of a column, name least-of-rows, most-of-rows or count"),
    }
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
    use eke_results::report::{DataTable, Role, Variant, more};

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
    fn a_column_has_an_extreme_of_the_lines_that_are_meant() {
        let columns = ["disk", "eke", "loses"].map(str::to_owned).to_vec();
        let lines = ["sd\t0.60\tslower", "2008\t0.45\tslower", "memory\t0.10\t"].map(str::to_owned).to_vec();
        let table = DataTable { title: "by cell".into(), columns, lines, ..Default::default() };
        let report = Report { tables: vec![table], ..Default::default() };
        let of =
            |begin: &str, stat| in_column(&report, &["by", "eke", "loses", begin].map(str::to_owned), stat);
        assert_eq!(of("slower", Stat::LeastOfRows).unwrap(), 0.45);
        assert_eq!(of("slower", Stat::MostOfRows).unwrap(), 0.6);
        assert_eq!(of("slower", Stat::Count).unwrap(), 2.0);
        assert!(of("p99", Stat::LeastOfRows).is_err() && of("slower", Stat::Median).is_err());
    }

    #[test]
    fn eke_is_among_the_best_only_if_chance_leaves_no_doubt() {
        let peers = [Role::Peer, Role::Ours].map(|role| Variant {
            name: if role == Role::Ours { "eke".into() } else { "peer".into() },
            role,
            ..Default::default()
        });
        let row = |variant: &str, link: &str, samples: [f64; 5]| {
            let params = [("link".to_owned(), link.into())].into();
            Row::new(variant, &params, "rate", "MB/s", samples.to_vec())
        };
        let rows = vec![
            row("peer", "a", [100.0; 5]),
            row("eke", "a", [98.0; 5]),
            row("peer", "b", [100.0; 5]),
            row("eke", "b", [99.0, 110.0, 70.0, 60.0, 120.0]),
        ];
        let metrics = vec![more("rate", "")];
        let report = Report { variants: peers.to_vec(), metrics, rows, ..Default::default() };
        assert_eq!(among_the_best(&report, "rate", Among::Best).unwrap(), 1.0);
        assert_eq!(among_the_best(&report, "rate", Among::All).unwrap(), 2.0);
        assert!(among_the_best(&report, "other", Among::All).is_err());
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
