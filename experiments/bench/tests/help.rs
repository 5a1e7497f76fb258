//! Every sentence of the help as one list, to be read and reviewed as one.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "functions of tests, which fail by it")]

mod common;

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
    let ran = bench(&[path, &["--help"]].concat());
    assert_eq!(ran.status, Some(0), "{}", ran.shown());
    for verb in verbs(&ran.stdout) {
        collect(&[path, &[verb]].concat(), helps);
    }
    helps.push((path.join(" "), ran.stdout));
}

#[test]
fn every_sentence_of_the_help_is_reviewed() {
    let mut helps = Vec::new();
    collect(&[], &mut helps);
    HIDDEN.iter().for_each(|verb| collect(&[verb], &mut helps));
    helps.sort();
    let text: String = helps.iter().map(|(verb, help)| format!("===== eke-bench {verb}\n{help}\n")).collect();
    insta::assert_snapshot!(text);
}
