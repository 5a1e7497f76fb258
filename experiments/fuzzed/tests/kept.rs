//! Runs the parsers on the stored inputs: seeds, and inputs that revealed a fault.
#![allow(clippy::panic, clippy::expect_used, reason = "test code")]

use std::fs;
use std::path::{Path, PathBuf};

use eke_fuzzed::{TARGETS, find};

fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn list(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path()).collect();
    paths.sort();
    paths
}

#[test]
fn stored_inputs_break_no_parser() {
    let (mut count, mut broken) = (0, Vec::new());
    for target in TARGETS {
        (target.run)(b"");
        for file in ["seeds", "found"].iter().flat_map(|kind| list(&kept().join(kind).join(target.name))) {
            let bytes = fs::read(&file).expect("a kept file");
            if std::panic::catch_unwind(|| (target.run)(&bytes)).is_err() {
                broken.push(format!("{}: {}", target.name, file.display()));
            }
            count += 1;
        }
    }
    assert!(broken.is_empty(), "failed:\n{}", broken.join("\n"));
    assert!(count > 100, "{count} files are kept");
}

#[test]
fn stored_inputs_belong_to_a_target_and_are_small() {
    let mut bytes = 0;
    for dir in ["seeds", "found"].iter().flat_map(|kind| list(&kept().join(kind))) {
        let name = dir.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        assert!(find(name).is_some(), "{} belongs to no target", dir.display());
        bytes += list(&dir).iter().filter_map(|f| f.metadata().ok()).map(|m| m.len()).sum::<u64>();
    }
    assert!(bytes < 1 << 20, "{bytes} bytes are kept");
}
