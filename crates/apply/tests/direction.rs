//! Who may write: readers of the machine never write, and only this crate opens files below /proc, /sys, /dev or /etc
//! for writing.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which fail by it")]

use std::fs;
use std::path::{Path, PathBuf};

/// Code that opens a file for writing, or changes one.
const WRITES: &[&str] = &[
    ".write(true)",
    ".append(true)",
    "fs::write(",
    "File::create",
    "File::options",
    "OFlags::WRONLY",
    "OFlags::RDWR",
    "fs::remove_",
    "fs::rename(",
    "fs::copy(",
    "set_permissions",
    "libc::swapo",
];

/// Code that names a file of the machine.
const MACHINE: &[&str] = &["\"proc/", "\"/proc", "\"sys/", "\"/sys", "\"dev/", "\"/dev", "\"etc/", "\"/etc"];

/// Sources of the product that write files and name a file of the machine, with the reason.
const ALLOWED: &[(&str, &str)] = &[
    (
        "agent/src/pressure.rs",
        "a PSI trigger is a file of /proc/pressure opened for writing; it ends with the process",
    ),
    ("cache-mounts/src/dir.rs", "writes only in the user's own directory, and reads /proc/self/mountinfo"),
    ("cache-serve/src/device.rs", "/dev/fuse is the kernel's interface to a FUSE server"),
    ("cache-serve/src/main.rs", "/dev/null replaces closed standard streams"),
    (
        "cache-serve/src/spill/dir.rs",
        "writes only in the directory of --spill, and reads /proc/self/mountinfo",
    ),
    ("cli/src/verbs/link/caller.rs", "asks the user on /dev/tty"),
    ("present/src/output.rs", "writes a result where the user wants it, also to /dev/stdout"),
    ("swap/src/measure/zram.rs", "measures on a scratch zram device that apply added and journaled"),
];

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "tests" {
                sources(&path, found);
            }
        } else if name.ends_with(".rs") && name != "tests.rs" && !name.ends_with("_tests.rs") {
            found.push(path);
        }
    }
}

/// The code without comments, and without the tests at the end.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn has(code: &str, words: &[&str]) -> bool {
    words.iter().any(|word| code.contains(word))
}

fn product() -> Vec<(String, String)> {
    let crates = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
    let mut found = Vec::new();
    for member in fs::read_dir(&crates).unwrap().map(Result::unwrap) {
        sources(&member.path().join("src"), &mut found);
    }
    let named = |path: PathBuf| (path.strip_prefix(&crates).unwrap().display().to_string(), code(&path));
    found.into_iter().map(named).collect()
}

#[test]
fn readers_of_the_machine_write_nothing() {
    let writers: Vec<String> = product()
        .into_iter()
        .filter(|(name, code)| name.starts_with("linux/") && has(code, WRITES))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(writers, Vec::<String>::new());
}

#[test]
fn only_apply_writes_to_the_machine() {
    let all = product();
    assert!(all.len() > 300, "only {} sources were found", all.len());
    let mut writers: Vec<&str> = all
        .iter()
        .filter(|(name, code)| !name.starts_with("apply/") && has(code, WRITES) && has(code, MACHINE))
        .map(|(name, _)| name.as_str())
        .collect();
    writers.sort_unstable();
    let mut allowed: Vec<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    allowed.sort_unstable();
    assert_eq!(writers, allowed, "write through eke-apply, or add the reason to this list");
}

#[test]
fn only_tests_can_name_the_calls_that_change_the_machine() {
    let workspace = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
    for group in ["crates", "experiments"] {
        for member in fs::read_dir(workspace.join(group)).unwrap().map(Result::unwrap) {
            let manifest = fs::read_to_string(member.path().join("Cargo.toml")).unwrap_or_default();
            let turns_on = manifest.lines().any(|l| l.starts_with("eke-apply") && l.contains("testing"));
            assert_eq!(turns_on, member.file_name() == "testkit", "{:?}", member.path());
            let normal = manifest.split("[dev-dependencies]").next().unwrap_or_default();
            let linked = normal.lines().any(|l| l.starts_with("eke-testkit"));
            assert!(!linked || group == "experiments", "{:?} links the test kit", member.path());
        }
    }
}
