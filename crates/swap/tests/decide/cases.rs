//! Machines as files: `cases/NN-name` has facts and measurement as JSON, the configuration, and the resulting plan.
//!
//! `EKE_BLESS=1 cargo test -p eke-swap --test decide cases` writes each `plan.txt` anew.

use std::fs;
use std::path::{Path, PathBuf};

use eke_model::config::{Settings, Source};
use eke_swap::decide::{Overrides, decide};
use eke_swap::facts::Facts;
use eke_swap::measure::measurements::Measured;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::machine::shown;

fn cases() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut cases: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

/// A file must have all fields of the type and no others.
fn parsed<T: Serialize + DeserializeOwned>(file: &Path) -> T {
    let text = read(file);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let parsed: T =
        serde_json::from_value(value.clone()).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    assert_eq!(serde_json::to_value(&parsed).unwrap(), value, "{}", file.display());
    parsed
}

fn plan(case: &Path) -> String {
    let facts: Facts = parsed(&case.join("facts.json"));
    let measured: Measured = parsed(&case.join("measured.json"));
    let source = Source { name: "eke.toml", text: &read(&case.join("eke.toml")) };
    let settings = Settings::from_sources(&[source]).unwrap();
    let overrides = Overrides { settings: settings.swap, size: None, guard: settings.guard.enabled };
    shown(&decide(&facts, &measured, &overrides).unwrap())
}

#[expect(clippy::disallowed_methods, reason = "an expected plan is written anew")]
fn check(case: &Path) {
    let (plan, expected) = (plan(case), case.join("plan.txt"));
    if std::env::var_os("EKE_BLESS").is_some() {
        fs::write(&expected, &plan).unwrap();
    }
    assert_eq!(plan, read(&expected), "{}", case.display());
}

#[test]
fn each_machine_gets_its_plan() {
    let cases = cases();
    assert!(cases.len() >= 6, "{cases:?}");
    cases.iter().for_each(|case| check(case));
}
