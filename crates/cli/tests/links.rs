//! The documents' links: every file, anchor and path that a document names exists.

#![allow(clippy::unwrap_used, reason = "functions of tests, which fail by it")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Directories without documents of this repository.
const SKIPPED: [&str; 4] = ["target", ".git", "node_modules", "tests"];
/// A path in backquotes is of the repository if it begins with one of these.
const TREES: [&str; 6] = ["crates/", "experiments/", "docs/", "scripts/", "units/", "fuzz/"];
/// Generated paths.
const MADE: &str = "fuzz/found";

fn repository() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).canonicalize().unwrap()
}

fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(&repository(), &mut found);
    assert!(found.len() > 10, "only {} documents", found.len());
    found
}

fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            if !SKIPPED.iter().any(|skipped| name == *skipped) {
                collect(&path, found);
            }
        } else if path.extension().is_some_and(|e| e == "md") {
            found.push(path);
        }
    }
}

/// The text without its code blocks.
fn prose(text: &str) -> String {
    let mut is_code = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence && !line.starts_with("    ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Targets of `[text](target)`, `src="target"` and `srcset="target"`.
fn targets(prose: &str) -> Vec<&str> {
    let between = |start: &'static str, end: char| {
        prose.split(start).skip(1).filter_map(move |rest| rest.split(end).next())
    };
    let all = between("](", ')').chain(between("src=\"", '"')).chain(between("srcset=\"", '"'));
    all.filter(|target| !target.contains("://") && !target.starts_with("mailto:")).collect()
}

/// GitHub's anchor of a heading: lower case, blanks as hyphens, no backquotes or punctuation.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().trim().to_lowercase().replace(' ', "-")
}

fn anchors(text: &str) -> BTreeSet<String> {
    prose(text).lines().filter(|l| l.starts_with('#')).map(|l| anchor(l.trim_start_matches('#'))).collect()
}

/// Why a target does not exist.
fn fault(document: &Path, target: &str) -> Option<String> {
    let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
    let file = if path.is_empty() { document.to_owned() } else { document.parent().unwrap().join(path) };
    if !file.exists() {
        return Some(format!("{target}: no such file"));
    }
    let has_anchor = || anchors(&std::fs::read_to_string(&file).unwrap()).contains(fragment);
    (!fragment.is_empty() && !has_anchor()).then(|| format!("{target}: no such heading"))
}

/// Paths of the repository in backquotes, without a test's name, a line or a pattern.
fn paths(prose: &str) -> Vec<&str> {
    let quoted = prose.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let plain = |path: &&str| !path.contains(['*', '…', '<', ' ', '{', '$']) && !path.contains("NAME");
    let paths = quoted.filter(|path| TREES.iter().any(|tree| path.starts_with(tree)));
    paths.filter_map(|path| path.split("::").next()).filter(plain).collect()
}

#[test]
fn every_link_and_path_of_the_documents_exists() {
    let root = repository();
    let mut faults = Vec::new();
    for document in documents() {
        let text = prose(&std::fs::read_to_string(&document).unwrap());
        let name = document.strip_prefix(&root).unwrap().display().to_string();
        let links = targets(&text).into_iter().filter_map(|target| fault(&document, target));
        let missing = paths(&text).into_iter().filter(|path| *path != MADE && !root.join(path).exists());
        faults.extend(links.map(|fault| format!("{name}: {fault}")));
        faults.extend(missing.map(|path| format!("{name}: `{path}`: no such file")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_missing_file_heading_or_path_is_found() {
    let document = repository().join("README.md");
    assert_eq!(fault(&document, "docs/README.md"), None);
    assert!(fault(&document, "docs/nothing.md").is_some());
    assert!(fault(&document, "#no-such-heading").is_some());
    assert_eq!(fault(&document, "#install"), None);
    assert_eq!(anchor(" `eke top`, and Prometheus"), "eke-top-and-prometheus");
    assert_eq!(paths("see `crates/a/src/b.rs::test` and `docs/*.md`"), ["crates/a/src/b.rs"]);
    assert_eq!(targets("[a](b.md) <img src=\"c.svg\"> [d](https://e)"), ["b.md", "c.svg"]);
}
