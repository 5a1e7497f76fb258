//! Results of experiments (made up, in `fixtures/`) as tables of 80 columns.

#![allow(clippy::unwrap_used, reason = "functions of tests, which fail by it")]

use eke_results::report::{DataTable, Provenance, Report, Row, saved};

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
fn tables_that_a_report_brings_are_on_the_terminal_unless_long_and_on_the_page() {
    let mut report = report(include_str!("fixtures/switch.json"));
    let short = DataTable {
        title: "Cells".into(),
        columns: vec!["disk".into(), "eke".into()],
        lines: vec!["2008\t1.25".into(), "\u{1b}[2J<b>\t9".into()],
        is_long: false,
    };
    let long = DataTable { title: "All".into(), is_long: true, ..short.clone() };
    report.tables = vec![short, long];
    let text = report.to_string();
    assert!(text.contains("\nCells\n") && text.contains(" disk  eke\n"), "{text}");
    assert!(text.contains(" 2008 1.25\n") && text.contains("All\n  2 lines: in the JSON"), "{text}");
    assert!(!text.contains('\u{1b}'));
    let page = eke_results::page::page(&report);
    assert_eq!(page.matches("<td>1.25</td>").count(), 2);
    assert!(!page.contains("<b>") && page.contains("<details><summary>All</summary>"));
}

#[test]
fn commits_settings_and_noise_are_on_the_terminal_and_on_the_page() {
    let mut report = report(include_str!("fixtures/switch.json"));
    let settings = [("disk sd: scheduler".to_owned(), "mq-deadline".to_owned())].into();
    report.provenance = Some(Provenance { commit: "b00b1e5".into(), settings, ..Provenance::default() });
    report.rows[0].commit = "0ddba11".into();
    let again = report.rows.iter().find(|row| row.variant == "eke").unwrap().clone();
    report.rows.push(Row { variant: "eke, again".into(), median: 2.0 * again.median, ..again });
    let (text, page) = (report.to_string(), eke_results::page::page(&report));
    assert!(text.contains("(of 0ddba11 and b00b1e5, written by b00b1e5)"), "{text}");
    assert!(page.contains("<dd>0ddba11, b00b1e5</dd>") && page.contains("<dt>disk sd: scheduler</dt>"));
    for shown in [&text, &page] {
        assert!(shown.contains("mq-deadline"), "{shown}");
        assert!(shown.contains("differs from itself by up to 100 %"), "{shown}");
    }
}

#[test]
fn a_foreign_report_cannot_steer_the_terminal() {
    let mut report = report(include_str!("fixtures/switch.json"));
    report.notes.push("\u{1b}[2Jgone\u{7}".into());
    report.experiment = "a\u{9b}b".into();
    assert!(!report.to_string().contains(|c: char| c.is_control() && c != '\n'));
}
