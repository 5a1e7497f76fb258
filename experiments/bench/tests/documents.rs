//! The help of `eke-bench` as one list, to be read and reviewed as one; and its generated documents.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "functions of tests, which fail by it")]

mod common;

use std::path::Path;

use common::bench;

/// The hidden verbs, which no help lists.
const HIDDEN: [&str; 2] = ["lab", "stressor"];

/// The verbs that the help of a verb lists.
fn verbs(help: &str) -> Vec<&str> {
    let Some((_, list)) = help.split_once("Commands:\n") else { return Vec::new() };
    let list = list.split("\n\n").next().unwrap_or_default();
    let names = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect()
}

/// The help of `path` and of all verbs below it.
fn collect(path: &[&str], helps: &mut Vec<(String, String)>) {
    let help = bench(&[path, &["--help"]].concat()).stdout;
    for verb in verbs(&help) {
        collect(&[path, &[verb]].concat(), helps);
    }
    helps.push((path.join(" "), help));
}

#[test]
fn every_sentence_of_the_help_is_reviewed() {
    let mut helps = Vec::new();
    collect(&[], &mut helps);
    HIDDEN.iter().for_each(|verb| collect(&[verb], &mut helps));
    helps.sort();
    assert!(helps.len() > 10, "only {} verbs were found", helps.len());
    let text: String = helps.iter().map(|(verb, help)| format!("===== eke-bench {verb}\n{help}\n")).collect();
    insta::assert_snapshot!(text);
}

/// `EKE_BLESS=1` writes the file anew.
#[test]
#[expect(clippy::disallowed_methods, reason = "a file of the source tree")]
fn the_schemas_are_up_to_date() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas-bench.json");
    let printed = bench(&["schema"]).stdout;
    if std::env::var_os("EKE_BLESS").is_some() {
        std::fs::write(&file, &printed).unwrap();
    }
    let documented = std::fs::read_to_string(file).unwrap();
    assert!(printed == documented, "docs/schemas-bench.json is not current: `make docs` writes it");
}
