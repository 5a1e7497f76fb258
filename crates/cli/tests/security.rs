//! `docs/security.md` names the test behind each line: all these tests exist.

use std::path::Path;

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The tests named in backquotes: `crates/…/file.rs::name`.
fn named(document: &str) -> Vec<(&str, &str)> {
    let quoted = document.split('`').skip(1).step_by(2);
    quoted
        .filter(|name| name.starts_with("crates/") || name.starts_with("experiments/"))
        .filter_map(|name| name.split_once("::"))
        .collect()
}

/// The names in backquotes in a row's last column that look like tests but lack a file.
fn without_file(row: &str) -> Vec<&str> {
    let last = row.trim_end_matches(['|', ' ']).rsplit(" | ").next().unwrap_or_default();
    let quoted = last.split('`').skip(1).step_by(2);
    quoted.filter(|name| name.matches('_').count() >= 3 && !name.contains("::")).collect()
}

/// True if a test of this name exists. The attribute may be some lines before it.
fn is_a_test(source: &str, name: &str) -> bool {
    let Some((before, _)) = source.split_once(&format!("fn {name}(")) else { return false };
    let since_the_last_item = before.rsplit("\n}\n").next().unwrap_or_default();
    since_the_last_item.contains("#[test]")
}

#[test]
fn every_test_that_the_document_names_exists() {
    let document = std::fs::read_to_string(repository().join("docs/security.md")).unwrap();
    let named = named(&document);
    assert!(named.len() > 30, "only {} tests are named", named.len());
    for (file, name) in named {
        let source = std::fs::read_to_string(repository().join(file)).unwrap_or_default();
        assert!(is_a_test(&source, name), "docs/security.md names {file}::{name}, which is no test");
    }
}

#[test]
fn every_line_of_a_table_of_claims_names_a_test() {
    let document = std::fs::read_to_string(repository().join("docs/security.md")).unwrap();
    let mut is_claim = false;
    for line in document.lines() {
        match line.strip_prefix("| ") {
            None => is_claim = is_claim && line.starts_with('|'),
            Some(row) if row.ends_with("| test |") => is_claim = true,
            Some(row) if is_claim && !row.starts_with("---") => {
                assert!(!named(row).is_empty(), "no test: {line}");
                assert_eq!(without_file(row), [""; 0], "a test without its file is not checked");
            }
            Some(_) => {}
        }
    }
}
