//! Which results are there, of which commit.

use std::path::Path;

use eke_results::report::provenance::is_same_code;
use serde::Deserialize;

#[derive(Deserialize)]
struct Result {
    provenance: Provenance,
}

#[derive(Deserialize)]
struct Provenance {
    commit: String,
}

/// The commit of the result in this file; `None` if it has none, or is no result.
pub fn commit(file: &Path) -> Option<String> {
    let result: Result = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    Some(result.provenance.commit)
}

/// True if the result of this commit need not be made again: the same commit, and nothing in it that no commit has.
pub fn is_of(found: Option<&str>, commit: &str) -> bool {
    found.is_some_and(|found| is_same_code(found, commit))
}

#[cfg(test)]
mod tests {
    use super::is_of;

    #[test]
    fn a_changed_tree_has_no_results() {
        assert!(is_of(Some("abc"), "abc"));
        assert!(!is_of(Some("abc-dirty"), "abc-dirty"), "two changed trees have the same name");
        assert!(!is_of(Some("abd"), "abc"));
        assert!(!is_of(None, "abc"));
    }
}
