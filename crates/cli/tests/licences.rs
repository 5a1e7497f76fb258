//! The licence of every linked package allows distribution under MIT or Apache-2.0.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

use std::process::Command;

const FINE: [&str; 10] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Unicode-3.0",
    "Zlib",
    "Unlicense",
    // programs need no notice of it
    "BSL-1.0",
];

/// `A OR B`: one of them is enough; `A AND B`: all of them; `/` is an old way to write OR.
fn is_fine(expression: &str) -> bool {
    let flat = expression.replace(['(', ')'], "").replace('/', " OR ");
    flat.split(" AND ").all(|part| part.split(" OR ").any(|one| FINE.contains(&one.trim())))
}

#[test]
fn licences_are_on_the_list() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 50);
    for package in packages {
        let licence = package["license"].as_str().unwrap_or_default();
        assert!(is_fine(licence), "{} is under \"{licence}\"", package["name"]);
    }
}

#[test]
fn expressions_are_read_as_spdx_means_them() {
    assert!(
        is_fine("MIT OR GPL-3.0")
            && is_fine("MIT/Apache-2.0")
            && is_fine("(MIT OR Apache-2.0) AND Unicode-3.0")
    );
    assert!(!is_fine("GPL-3.0") && !is_fine("MIT AND GPL-3.0") && !is_fine(""));
}
