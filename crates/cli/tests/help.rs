//! Every sentence of the help as one list, to be read and reviewed as one; and the man pages, which have the same source.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "functions of tests, which fail by it")]

mod common;

use common::eke;

/// Verbs of `eke-bench`, which has their help.
const ELSEWHERE: [&str; 2] = ["bench", "replay"];

/// The verbs that the help of a verb lists.
fn verbs(help: &str) -> Vec<&str> {
    let Some((_, list)) = help.split_once("Commands:\n") else { return Vec::new() };
    let list = list.split("\n\n").next().unwrap_or_default();
    let names = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help" && !ELSEWHERE.contains(name))
        .collect()
}

/// The help of `path` and of all verbs below it.
fn collect(path: &[&str], helps: &mut Vec<(String, String)>) {
    let help = eke(&[path, &["--help"]].concat()).stdout;
    for verb in verbs(&help) {
        collect(&[path, &[verb]].concat(), helps);
    }
    helps.push((path.join(" "), help));
}

fn all() -> Vec<(String, String)> {
    let mut helps = Vec::new();
    collect(&[], &mut helps);
    helps.sort();
    helps
}

#[test]
fn every_sentence_of_the_help_is_reviewed() {
    let text: String = all().iter().map(|(verb, help)| format!("===== eke {verb}\n{help}\n")).collect();
    insta::assert_snapshot!(text);
}

#[test]
fn every_verb_has_a_man_page_with_its_examples() {
    let directory = tempfile::tempdir().unwrap();
    let ran = eke(&["man", "--directory", directory.path().to_str().unwrap()]);
    assert_eq!(ran.status, Some(0), "{}", ran.shown());
    for (verb, help) in all() {
        let name = format!("eke {verb}").trim_end().replace(' ', "-");
        let page = std::fs::read_to_string(directory.path().join(format!("{name}.1"))).unwrap();
        assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{name}");
        assert_eq!(page.contains(".SH EXAMPLES"), help.contains("Example:"), "{name}");
    }
}

#[test]
fn the_man_page_of_an_unknown_verb_is_refused() {
    let ran = eke(&["man", "cache", "fly"]);
    assert_eq!(ran.status, Some(2), "{}", ran.shown());
    assert!(ran.stderr.contains("eke cache has no verb \"fly\""), "{}", ran.stderr);
}
