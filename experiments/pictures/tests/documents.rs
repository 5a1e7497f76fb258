//! The README's numbers are those of the stored results.

#![allow(clippy::unwrap_used, reason = "functions of tests, which fail by it")]

use std::path::Path;

use eke_pictures::gains;

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn the_readmes_table_is_made_from_stored_results() {
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let table = gains::table(&repository().join("docs/results")).unwrap();
    assert!(readme.contains(&table), "README.md lacks this table:\n{table}");
}
