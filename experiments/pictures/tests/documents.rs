//! The numbers of README and pages are those of the stored results.

#![allow(clippy::unwrap_used, reason = "functions of tests, which fail by it")]

use std::path::Path;

use eke_pictures::{gains, measurements};

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
