//! A comparison as text.

use std::fmt::Write as _;

use crate::rows::{Change, Compared, Comparison};

const HEAD: [&str; 5] = ["base", "new", "ratio", "noise", "change"];

/// One line per row, then the rows that could not be compared.
pub fn text(comparison: &Comparison) -> String {
    let width = comparison.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    let [base, new, ratio, noise, change] = HEAD;
    let _ = writeln!(out, "{:width$}  {base:>12}  {new:>12}  {ratio:>6}  {noise:>7}  {change}", "");
    for row in &comparison.rows {
        let _ = writeln!(out, "{:width$}  {}", row.name, cells(row));
    }
    for name in &comparison.missing {
        let _ = writeln!(out, "not in every run: {name}");
    }
    out
}

fn cells(row: &Compared) -> String {
    let noise = row.noise.map_or_else(|| "unknown".into(), |noise| format!("{:.1} %", noise * 100.0));
    let change = match row.change {
        Change::None => "none",
        Change::Better => "better",
        Change::Worse => "worse",
    };
    let value = |value: f64| format!("{} {}", short(value), row.unit);
    format!("{:>12}  {:>12}  {:>6.3}  {noise:>7}  {change}", value(row.base), value(row.new), row.ratio())
}

/// Three digits, or all digits before the point.
fn short(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        middle if middle >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_a_line_with_its_noise() {
        let row = |name: &str, new, noise, change| Compared {
            name: name.into(),
            unit: "MB/s".into(),
            base: 102.0,
            new,
            noise,
            change,
        };
        let rows = vec![
            row("throughput, eke", 128.0, Some(0.04), Change::Better),
            row("other", 5.25, None, Change::None),
        ];
        let comparison = Comparison { rows, missing: vec!["third".into()] };
        assert_eq!(
            text(&comparison),
            "                         base           new   ratio    noise  change\n\
             throughput, eke      102 MB/s      128 MB/s   1.255    4.0 %  better\n\
             other                102 MB/s     5.25 MB/s   0.051  unknown  none\n\
             not in every run: third\n"
        );
    }
}
