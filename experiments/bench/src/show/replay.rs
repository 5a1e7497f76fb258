//! A replay of predictors as text.

use std::fmt::Write as _;
use std::path::Path;

use eke_model::units::Bytes;
use eke_prefetch_model::program::shown;
use eke_present::table::Table;

use crate::documents::{Replay, Row};

/// A table for each budget, one of ranks, and how often probabilities came true.
pub fn replay(document: &Replay) -> String {
    let budgets = distinct(document.rows.iter().filter_map(|row| row.params.get("budget")));
    let horizons = distinct(document.rows.iter().filter_map(|row| row.params.get("horizon")));
    let mut out = format!("{}\n", shown(Path::new(&document.trace)));
    out.extend(budgets.iter().map(|budget| of_budget(&document.rows, budget)));
    let ranks: Vec<&Row> = document.rows.iter().filter(|row| row.metric == "hit at").collect();
    if !ranks.is_empty() {
        let k = |row: &Row| format!("among {}", row.params.get("k").map_or("?", String::as_str));
        let _ = write!(out, "\nThe next program was among the first\n{}", table(&ranks, line, k));
    }
    out.extend(horizons.iter().map(|horizon| of_horizon(&document.rows, horizon)));
    out
}

fn with<'a>(rows: &'a [Row], param: &str, is: &str) -> Vec<&'a Row> {
    rows.iter().filter(|row| row.params.get(param).is_some_and(|value| value == is)).collect()
}

fn of_budget(rows: &[Row], budget: &str) -> String {
    let (bound, values): (Vec<&Row>, Vec<&Row>) =
        with(rows, "budget", budget).into_iter().partition(|row| row.metric == "bound");
    let bytes = budget.parse().map_or_else(|_| budget.to_owned(), |bytes| Bytes(bytes).to_string());
    let unbound: Vec<String> = bound.iter().filter(|row| row.value == 0.0).map(|row| line(row)).collect();
    let note = match unbound.as_slice() {
        [] => String::new(),
        lines => format!(
            "  It was enough for everything that {} chose: hits mean nothing there.\n",
            lines.join(", ")
        ),
    };
    format!("\nA budget of {bytes}\n{}{note}", table(&values, line, |row| row.metric.clone()))
}

fn of_horizon(rows: &[Row], horizon: &str) -> String {
    let bins: Vec<&Row> =
        with(rows, "horizon", horizon).into_iter().filter(|row| row.params.contains_key("from")).collect();
    if bins.is_empty() {
        return String::new();
    }
    let percent = |row: &Row, name: &str| {
        let value = row.params.get(name).and_then(|value| value.parse::<f64>().ok());
        value.map_or("?".to_owned(), |value| format!("{:.0} %", 100.0 * value))
    };
    let line = |row: &Row| format!("{} to {}", percent(row, "from"), percent(row, "to"));
    let table = table(&bins, line, |row| row.metric.clone());
    format!("\nProbabilities of eke that a program starts within {horizon} s, and how often it did\n{table}")
}

fn line(row: &Row) -> String {
    match row.params.get("order") {
        Some(order) => format!("{} ({order})", row.variant),
        None => row.variant.clone(),
    }
}

/// Each once, in order of first use.
fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    values.fold(Vec::new(), |mut all, value| {
        if !all.contains(&value) {
            all.push(value);
        }
        all
    })
}

/// A line and a column for each of what `line` and `column` call the rows.
fn table(rows: &[&Row], line: impl Fn(&Row) -> String, column: impl Fn(&Row) -> String) -> Table {
    let columns = distinct(rows.iter().map(|row| column(row)));
    let header: Vec<&str> = std::iter::once("").chain(columns.iter().map(String::as_str)).collect();
    let mut table = Table::new(&header);
    for name in distinct(rows.iter().map(|row| line(row))) {
        let cell = |of: &String| {
            let found = rows.iter().find(|row| line(row) == name && column(row) == *of);
            found.map_or("-".to_owned(), |row| value(row))
        };
        table.row(std::iter::once(name.clone()).chain(columns.iter().map(cell)));
    }
    table
}

fn value(row: &Row) -> String {
    match row.unit.as_str() {
        "%" => format!("{:.1} %", row.value),
        "bytes" => Bytes(row.value.max(0.0) as u64).to_string(),
        _ => format!("{:.4}", row.value).trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn row(variant: &str, params: &[(&str, &str)], metric: &str, unit: &str, value: f64) -> Row {
        let params: BTreeMap<String, String> =
            params.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Row { variant: variant.into(), params, metric: metric.into(), unit: unit.into(), value }
    }

    #[test]
    fn a_replay_is_tables() {
        let small = [("budget", "67108864"), ("order", "probability")];
        let own = [("budget", "67108864"), ("order", "own")];
        let large = [("budget", "1073741824"), ("order", "probability")];
        let rows = vec![
            row("trace", &[], "starts", "", 120.0),
            row("naive", &[("k", "1")], "hit at", "%", 13.6),
            row("naive", &[("k", "5")], "hit at", "%", 45.9),
            row("naive", &small, "hit maps", "%", 63.04),
            row("naive", &small, "waste", "%", 12.0),
            row("naive", &small, "bound", "", 1.0),
            row("preload", &own, "hit maps", "%", 91.0),
            row("preload", &own, "fetched per start", "bytes", 41_943_040.0),
            row("preload", &own, "bound", "", 0.5),
            row("naive", &large, "hit maps", "%", 93.0),
            row("naive", &large, "bound", "", 0.0),
            row("eke", &[("horizon", "600"), ("from", "0.1"), ("to", "0.2")], "predicted", "%", 14.9),
            row("eke", &[("horizon", "600"), ("from", "0.1"), ("to", "0.2")], "observed", "%", 15.2),
            row("eke", &[("horizon", "600"), ("from", "0.1"), ("to", "0.2")], "count", "", 1234.0),
            row("eke", &[("horizon", "600")], "calibration error", "%", 1.5),
        ];
        insta::assert_snapshot!(replay(&Replay { trace: "a\x1b.csv".into(), rows }));
    }
}
