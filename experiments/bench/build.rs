//! Tells the program its commit, as `EKE_COMMIT`: every result has it. Packages are built outside the repository and set the variable themselves.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=EKE_COMMIT");
    for path in ["../../.git/logs/HEAD", "../../crates", "../../experiments", "../../Cargo.lock"] {
        if std::path::Path::new(path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    let commit = std::env::var("EKE_COMMIT").ok().or_else(described).unwrap_or_else(|| "unknown".into());
    println!("cargo:rustc-env=EKE_COMMIT={commit}");
}

fn described() -> Option<String> {
    let output =
        Command::new("git").args(["describe", "--always", "--dirty", "--abbrev=12"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned()).filter(|text| !text.is_empty())
}
