//! The numbers of README and pages are those of the stored results.

#![allow(clippy::unwrap_used, reason = "functions of tests, which fail by it")]

use std::path::Path;

use eke_pictures::theme::Theme;
use eke_pictures::{gains, measurements};
use eke_results::report::again::first_of;
use eke_results::report::groups::{Group, groups, is_ours};
use eke_results::report::{Report, Row, saved};

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

/// The text between a heading and the next of its rank.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let rest = page.split(&format!("\n## {heading}\n")).nth(1).unwrap();
    rest.split("\n## ").next().unwrap()
}

fn page(name: &str) -> String {
    std::fs::read_to_string(repository().join(name)).unwrap()
}

/// The stored results with their names, in the order of names.
fn stored() -> Vec<(String, Report)> {
    let entries = std::fs::read_dir(repository().join("docs/results")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".json")).collect();
    names.sort();
    let read = |name: String| {
        let report = saved::parse(&page(&format!("docs/results/{name}"))).unwrap();
        (name, report)
    };
    names.into_iter().map(read).collect()
}

/// Whether eke's row of the main metric is worse than a peer's, beyond chance as far as that can be told.
fn loses(report: &Report) -> bool {
    let main = report.metrics.first().map(|metric| metric.name.as_str());
    let groups = groups(report);
    let mains = groups.iter().filter(|group| Some(group.metric.name.as_str()) == main);
    let loses = |group: &Group<'_>| {
        let ours = group.members.iter().filter(|member| is_ours(member));
        ours.filter_map(|member| Some(group.beside(member)?.sentence(member.role)))
            .any(|s| s.contains("loses"))
    };
    mains.into_iter().any(loses)
}

#[test]
fn every_result_in_which_eke_loses_is_named_where_it_loses() {
    let (readme, evidence) = (page("README.md"), page("docs/evidence.md"));
    let told = [section(&readme, "Where it loses"), section(&evidence, "Where eke loses")].concat();
    let lost: Vec<String> = stored().into_iter().filter(|(_, r)| loses(r)).map(|(name, _)| name).collect();
    assert!(
        lost.contains(&"web-grid.json".to_owned()) && lost.contains(&"paging.json".to_owned()),
        "{lost:?}"
    );
    let silent: Vec<&String> =
        lost.iter().filter(|name| !told.contains(&format!("results/{name})"))).collect();
    assert!(silent.is_empty(), "eke loses in {silent:?}");
}

/// The names of the arms in stored results are those that the comparison knows.
#[test]
fn stored_results_with_a_repeated_arm_have_a_noise_floor() {
    let mut found = Vec::new();
    for (name, report) in stored() {
        let is_again = |row: &Row| first_of(&row.variant).is_some();
        if report.rows.iter().any(is_again) {
            assert!(groups(&report).iter().any(|group| group.noise() > 0.0), "{name}");
            found.push(name);
        }
    }
    for name in ["farm.json", "names.json"] {
        assert!(found.iter().any(|found| found == name), "{name}: {found:?}");
    }
}

#[test]
fn what_is_measured_but_not_stored_is_in_the_list_of_that() {
    let evidence = page("docs/evidence.md");
    let list = section(&evidence, "Not stored");
    let claims = measurements::claims(repository()).unwrap();
    let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == ',';
    let numbers = |text: &str| -> Vec<String> {
        let parts = text.split(|c: char| !is_part(c)).map(|part| part.trim_matches(['.', ',']).to_owned());
        parts.filter(|part| part.contains(|c: char| c.is_ascii_digit())).collect()
    };
    let listed = numbers(list);
    let mut missing = String::new();
    for (page, text) in claims.not_stored("docs/evidence.md") {
        for number in numbers(text).into_iter().filter(|number| !listed.contains(number)) {
            missing += &format!("{page}: {number} in \"{text}\"\n");
        }
    }
    assert!(missing.is_empty(), "{missing}");
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
    assert_eq!(widths.len(), 8);
    assert!(widths[0] < widths[4] && widths[1] < widths[0] && widths[5] < widths[4], "{widths:?}");
}
