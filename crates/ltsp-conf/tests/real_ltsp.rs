//! LTSP's own reading of `ltsp.conf`, by a real shell, beside ours: what no note warns of has the same values for both, and lets the client boot.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "test code")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use eke_ltsp_conf::sections::{Who, assigned};
use eke_ltsp_conf::{entries, options};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

const MAC: &str = "52:54:00:aa:bb:cc";
const IP: &str = "192.168.67.9";
const NAME: &str = "pc01";
const FILES: usize = 600;
const HEADS: [&str; 14] = [
    "[clients]",
    "[clients]",
    " [clients]",
    "[ Clients ]  # all",
    "\t[clients]",
    "[clients]\r",
    "[common]",
    "[server]",
    "[52:54:*|02:*]",
    "[192.168.67.9]",
    "[PC0?]",
    "[other]",
    "[small]",
    "\u{feff}[clients]",
];
/// Without several assignments in a line, which are the shell's alone.
const LINES: [&str; 40] = [
    "EKE=auto",
    "EKE=off",
    "  EKE=auto",
    "\tEKE=auto",
    "EKE = auto",
    "  EKE = auto",
    "EKE =auto",
    "EKE= auto",
    "EKE\t=auto",
    "EKE=\tauto",
    "EKE=\t",
    "EKE=auto \t",
    "EKE=auto\t# yes",
    "EKE=auto#yes",
    "EKE='auto'",
    "EKE=\"auto\" # yes",
    "EKE=\"auto\"off",
    "EKE=auto\r",
    "\r",
    "  \r",
    "",
    "\t",
    "# EKE=off",
    "#\r",
    "EKE",
    "eke=auto",
    "EKE =",
    "EKE+=auto",
    "EKE_SWAP=zram",
    "EKE_SWAP=off",
    "EKE_SWAP = \"zswap\"",
    "EKE_SWAP=a\\\nb",
    "EKE_POOL_PERCENT=50",
    "EKE_POOL_PERCENT=\"5\n0\"",
    "INCLUDE=small",
    " INCLUDE=small",
    "include = \"Small\" # yes",
    "INCLUDE=other\r",
    "HOSTNAME=pc02",
    "true",
];

/// Reads each file as a client does (`eval_ini` of LTSP's `55-config.sh`; the other half of it is for servers).
const HARNESS: &str = r#"
. "$1"; shift
re() { "$@" || die; }
die() { echo DIED; exit 0; }
for file; do
    echo "FILE $file"
    (
        exec 2>/dev/null
        MAC_ADDRESS=52:54:00:aa:bb:cc IP_ADDRESS=192.168.67.9 HOSTNAME=pc01
        eval "$(ini2sh "$file")" || die
        re section_call unnamed clients common "" "$MAC_ADDRESS" "$IP_ADDRESS"
        re section_call "$HOSTNAME"
        printf 'EKE %s\nEKE_SWAP %s\nEKE_POOL_PERCENT %s\n' "$EKE" "$EKE_SWAP" "$EKE_POOL_PERCENT"
    )
done
"#;

/// LTSP's script, of the package that `EKE_VM=fetch` gets.
fn ltsp() -> Option<PathBuf> {
    let package = eke_vm::find_package(&eke_vm::default_cache(), "ltsp");
    let script = package.map(|package| package.join("usr/share/ltsp/common/ltsp/55-config.sh"));
    if script.is_none() {
        let is_required = std::env::var("EKE_VM").is_ok_and(|words| words.contains("require"));
        assert!(!is_required, "Debian's package ltsp is not in {}", eke_vm::default_cache().display());
        eprintln!("skipped: ltsp_reads_what_we_read: no package ltsp in the cache of the small machine");
    }
    script
}

/// Some files of a few lines, the same in every run.
fn files() -> Vec<String> {
    let part = (select(&HEADS[..]), prop::collection::vec(select(&LINES[..]), 0..4));
    let all = (prop::collection::vec(select(&LINES[..]), 0..2), prop::collection::vec(part, 0..4));
    let mut runner = TestRunner::deterministic();
    let file = |runner: &mut TestRunner| {
        let (first, parts) = all.new_tree(runner).unwrap().current();
        let lines =
            first.into_iter().chain(parts.into_iter().flat_map(|(head, body)| [vec![head], body].concat()));
        lines.fold(String::new(), |text, line| text + line + "\n")
    };
    std::iter::repeat_with(|| file(&mut runner)).take(FILES).collect()
}

/// What the shell has of each file; nothing where the boot ends.
fn by_ltsp(script: &Path, files: &[String]) -> Vec<Option<BTreeMap<String, String>>> {
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = (0..files.len()).map(|n| dir.path().join(n.to_string())).collect();
    paths.iter().zip(files).for_each(|(path, text)| fs::write(path, text).unwrap());
    let output = Command::new("sh").args(["-c", HARNESS, "sh"]).arg(script).args(&paths).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let read = |part: &str| {
        let (_, rest) = part.split_once('\n')?;
        if rest.contains("DIED") || !rest.starts_with("EKE ") {
            return None;
        }
        let mut values = BTreeMap::new();
        for line in rest.split_inclusive('\n') {
            match line.split_once(' ').filter(|(name, _)| name.starts_with("EKE")) {
                Some((name, value)) => {
                    drop(values.insert(name.to_owned(), value.trim_end_matches('\n').to_owned()))
                }
                None => drop(values.insert("more".to_owned(), line.to_owned())),
            }
        }
        Some(values)
    };
    text.split("FILE ").skip(1).map(read).collect()
}

#[test]
fn ltsp_reads_what_we_read() {
    let Some(script) = ltsp() else { return };
    let files = files();
    let who = Who { mac: Some(MAC.into()), ip: Some(IP.into()), name: Some(NAME.into()) };
    let (mut alike, mut wrong) = (0, Vec::new());
    for (text, shell) in files.iter().zip(by_ltsp(&script, &files)) {
        // Of an empty file there is nothing to say.
        let Some(read) = entries(text).ok().filter(|read| !read.is_empty()) else { continue };
        let ours = assigned(&read, &who);
        if !options::wrong(&read).is_empty() {
            continue;
        }
        let has = |name: &str| (name.to_owned(), options::value(&ours, name).unwrap_or_default());
        let is_known = ours
            .iter()
            .filter(|(name, _)| name.starts_with("EKE"))
            .all(|(name, _)| options::value(&ours, name).is_some());
        let ours: BTreeMap<_, _> = ["EKE", "EKE_SWAP", "EKE_POOL_PERCENT"].map(has).into();
        match shell {
            Some(shell) if shell == ours || !is_known => alike += 1,
            shell => wrong.push(format!("{text:?}\n  LTSP: {shell:?}\n  ours: {ours:?}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), alike + wrong.len(), wrong.join("\n"));
    assert!(alike > FILES / 10, "{alike}");
}
