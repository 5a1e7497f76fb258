//! The numbers of README and pages are those of the stored results.

#![allow(clippy::unwrap_used, reason = "functions of tests, which fail by it")]

use std::path::Path;

use eke_pictures::theme::Theme;
use eke_pictures::{gains, measurements};

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn the_readmes_table_is_made_from_stored_results() {
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let table = gains::table(&repository().join("docs/results")).unwrap();
    assert!(readme.contains(&table), "README.md lacks this table:\n{table}");
}

/// `make docs` mends values; what else a number is, `docs/measurements.toml` says.
#[test]
fn every_number_of_a_page_is_accounted_for() {
    let mut faults = String::new();
    for page in measurements::check(repository()).unwrap() {
        page.faults.iter().for_each(|fault| faults += &format!("{}: {fault}\n", page.page));
        let lines = page.text.lines().zip(page.right.lines()).filter(|(is, right)| is != right);
        lines.for_each(|(is, right)| {
            faults += &format!("{}:\n- {is}\n+ {right}\n", page.page);
        });
    }
    assert!(faults.is_empty(), "{faults}");
}

/// An answer that only names what was counted is none.
#[test]
fn every_answer_of_the_evidence_has_a_number() {
    let evidence = std::fs::read_to_string(repository().join("docs/evidence.md")).unwrap();
    let table = evidence.split("## Results\n").nth(1).unwrap().split("\n**Wins").next().unwrap();
    let answers: Vec<&str> = table.lines().filter_map(|line| line.split('|').nth(2)).skip(2).collect();
    assert!(answers.len() > 20);
    for answer in answers {
        assert!(answer.contains(|c: char| c.is_ascii_digit()), "{answer}");
    }
}

/// Chromium's start was measured with the prediction given: the picture and the table say so.
#[test]
fn a_prediction_that_was_given_is_not_called_ekes_own() {
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let is_row = |line: &&str| line.starts_with('|') && line.contains("startup.json");
    let rows: Vec<&str> = readme.lines().filter(is_row).collect();
    assert!(!rows.is_empty());
    rows.iter().for_each(|row| assert!(row.contains("the prediction given"), "{row}"));
    let picture = gains::picture(&repository().join("docs/results"), Theme::Light).unwrap();
    assert!(picture.contains("the prediction given"));
}

#[test]
fn the_bars_of_the_gains_are_as_long_as_the_gains() {
    let picture = gains::picture(&repository().join("docs/results"), Theme::Light).unwrap();
    let bars = picture.split("<rect class=\"bar").skip(1);
    let widths = bars.filter_map(|bar| bar.split("width=\"").nth(1)?.split('"').next()?.parse().ok());
    let widths: Vec<f64> = widths.collect();
    assert_eq!(widths.len(), 6);
    assert!(widths[0] < widths[4] && widths[1] < widths[0] && widths[5] < widths[4], "{widths:?}");
}
