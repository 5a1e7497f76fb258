//! Results of experiments (made up, in `fixtures/`) as tables of 80 columns.

#![allow(clippy::unwrap_used, reason = "functions of tests, which fail by it")]

use eke_results::report::{Report, saved};

fn report(text: &str) -> Report {
    saved::parse(text).unwrap()
}

fn table(text: &str) -> String {
    let table = report(text).to_string();
    let longest = table.lines().map(|l| l.chars().count()).max().unwrap();
    assert!(longest <= 80, "{longest} columns:\n{table}");
    table
}

#[test]
fn paging() {
    insta::assert_snapshot!(table(include_str!("fixtures/paging.json")));
}

#[test]
fn switch() {
    insta::assert_snapshot!(table(include_str!("fixtures/switch.json")));
}

#[test]
fn capacity() {
    insta::assert_snapshot!(table(include_str!("fixtures/capacity.json")));
}

#[test]
fn variations() {
    insta::assert_snapshot!(table(include_str!("fixtures/variations.json")));
}

#[test]
fn a_foreign_report_cannot_steer_the_terminal() {
    let mut report = report(include_str!("fixtures/switch.json"));
    report.notes.push("\u{1b}[2Jgone\u{7}".into());
    report.experiment = "a\u{9b}b".into();
    assert!(!report.to_string().contains(|c: char| c.is_control() && c != '\n'));
}
