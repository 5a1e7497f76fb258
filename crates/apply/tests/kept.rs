//! Journals that released versions wrote: this version reads and reverts them.
//!
//! `kept/VERSION/` has, from that version:
//! - `records-N.jsonl`, `files-N.jsonl`: one record of each kind, in the Nth format of that version
//! - `knobs-N.txt`: the settings that a journal could name
//! - a directory for each machine: its journals, and the settings that eke changed, `before` and `after`
//!
//! A change of the format fails [`the_newest_kept_records_are_of_this_format`]. `EKE_BLESS=1 cargo test -p eke-apply --test kept`
//! then keeps the new format beside the old one, which stays readable. Nothing kept is ever removed or rewritten.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests, which fail by it")]

mod files_tree;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eke_apply::files::journal as of_files;
use eke_apply::files::state::State;
use eke_apply::files::{self, Outcome as FileOutcome};
use eke_apply::journal::record::{Intent, Phase, Record, Undo, VERSION};
use eke_apply::journal::{self, Journal};
use eke_apply::knob::{KNOBS, Restore};
use eke_apply::revert::{self, Outcome};
use eke_apply::state;
use eke_linux::Root;
use eke_linux::cgroup::name::Owner;
use eke_linux::discard::Discard;
use eke_model::applied::Applied;
use eke_model::process::ProcessId;
use eke_model::step::{Step, ZramSpec};
use eke_model::units::Bytes;
use eke_testkit::fake_kernel::FakeKernel;
use eke_testkit::tree;
use files_tree::{plant, tree as file_tree};

fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kept")
}

fn sorted(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    found.sort();
    found
}

fn versions() -> Vec<PathBuf> {
    sorted(&kept())
}

/// `kept/VERSION/NAME-N.EXT` of all versions, the oldest first.
fn formats(name: &str) -> Vec<PathBuf> {
    let is_one =
        |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(&format!("{name}-"));
    versions().iter().flat_map(|version| sorted(version)).filter(is_one).collect()
}

// ---- the format ----

/// One step of each kind. The match fails to compile when a kind is missing here.
fn steps() -> Vec<Step> {
    let steps = vec![
        Step::Set { knob: "queue.nr_requests".into(), target: "sda".into(), value: "32".into() },
        Step::LoadModule { name: "zram".into(), params: "num_devices=0".into() },
        Step::AddZram(ZramSpec {
            params: Some("level=3".into()),
            recompress_with: Some("zstd".into()),
            backing_dev: Some("/dev/loop7".into()),
            swap_priority: Some(100),
            ..ZramSpec::new("zstd", Bytes::mib(100))
        }),
        Step::SwapOn { path: "/dev/sda2".into(), priority: Some(5) },
        Step::SwapOff { path: "/dev/sda2".into() },
        Step::Stop { processes: vec![ProcessId { pid: 7, start_ticks: 70 }] },
    ];
    for step in &steps {
        match step {
            Step::Set { .. }
            | Step::LoadModule { .. }
            | Step::AddZram(_)
            | Step::SwapOn { .. }
            | Step::SwapOff { .. }
            | Step::Stop { .. } => {}
        }
    }
    steps
}

fn undos() -> Vec<Undo> {
    let undos = vec![
        Undo::Write {
            knob: "queue.scheduler".into(),
            target: "sda".into(),
            old: "none".into(),
            new: "kyber".into(),
            had_it: vec!["a/b".into()],
            beside: vec![("queue.nr_requests".into(), "64".into())],
        },
        Undo::UnloadModule { name: "zram".into() },
        Undo::RemoveZram { before: vec!["zram0".into()], expected: "zram1".into() },
        Undo::SwapOff { path: "/dev/sda2".into() },
        Undo::SwapOn { path: "/dev/sda2".into(), priority: Some(5), discard: Some(Discard::Pages) },
        Undo::Continue { processes: vec![ProcessId { pid: 7, start_ticks: 70 }] },
        Undo::Nothing,
    ];
    for undo in &undos {
        match undo {
            Undo::Write { .. }
            | Undo::UnloadModule { .. }
            | Undo::RemoveZram { .. }
            | Undo::SwapOff { .. }
            | Undo::SwapOn { .. }
            | Undo::Continue { .. }
            | Undo::Nothing => {}
        }
    }
    undos
}

fn phases() -> Vec<Phase> {
    let intent = |step, undo| {
        Phase::Intent(Box::new(Intent {
            owner: "swap".into(),
            step,
            undo,
            reason: "why".into(),
            made_by: Some(Owner { pid: 7, start_ticks: 70 }),
        }))
    };
    let mut phases = vec![
        Phase::Begun { boot_id: "11111111-2222-3333-4444-555555555555".into(), version: VERSION },
        Phase::Made { device: "zram1".into() },
        Phase::Done { draining: false },
        Phase::Done { draining: true },
        Phase::Failed { error: "EIO".into() },
        Phase::Reverted,
        Phase::Kept { why: "it is 77".into() },
    ];
    for phase in &phases {
        match phase {
            Phase::Begun { .. }
            | Phase::Intent(_)
            | Phase::Made { .. }
            | Phase::Done { .. }
            | Phase::Failed { .. }
            | Phase::Reverted
            | Phase::Kept { .. } => {}
        }
    }
    phases.extend(steps().into_iter().map(|step| intent(step, Undo::Nothing)));
    phases.extend(undos().into_iter().map(|undo| intent(Step::set("vm.swappiness", 180), undo)));
    phases
}

fn records() -> String {
    let record = |(n, phase)| Record { seq: n as u64, phase }.to_line() + "\n";
    phases().into_iter().enumerate().map(record).collect()
}

fn file_records() -> String {
    let file = |owner| State::File { text: "a\nb".into(), mode: 0o644, owner };
    let states = [State::Absent, file(Some((0, 0))), file(None), State::Symlink { target: "/etc/a".into() }];
    let record = |state: State| of_files::Record {
        owner: "enable".into(),
        path: "etc/x/a".into(),
        reason: "eke at every boot".into(),
        old: State::Absent,
        new: state,
        made_dirs: vec!["etc/x".into()],
    };
    states.map(|state| serde_json::to_string(&record(state)).unwrap() + "\n").concat()
}

/// The settings that a journal must be able to restore.
fn knobs() -> String {
    let restored = KNOBS.iter().filter(|k| k.restore == Restore::WriteOld);
    restored.map(|k| format!("{} {}\n", k.name, k.path)).collect()
}

fn check_newest(name: &str, extension: &str, now: &str) {
    let newest = formats(name).pop();
    if newest.as_ref().is_some_and(|path| fs::read_to_string(path).unwrap() == now) {
        return;
    }
    if std::env::var_os("EKE_BLESS").is_some() {
        let dir = kept().join(env!("CARGO_PKG_VERSION"));
        let n = (1..).find(|n| !dir.join(format!("{name}-{n}.{extension}")).exists()).unwrap();
        return files_tree::put(&dir.join(format!("{name}-{n}.{extension}")), now, 0o644);
    }
    panic!(
        "the format differs from {newest:?}. Journals in it exist and must stay readable: keep that file; EKE_BLESS=1 writes \
         the new format beside it:\n{now}"
    );
}

#[test]
fn the_newest_kept_records_are_of_this_format() {
    check_newest("records", "jsonl", &records());
    check_newest("files", "jsonl", &file_records());
    check_newest("knobs", "txt", &knobs());
}

#[test]
fn every_kept_record_is_read() {
    for path in formats("records") {
        for line in fs::read_to_string(&path).unwrap().lines() {
            Record::from_line(line).unwrap().unwrap();
        }
        let dir = tree::in_memory();
        tree::put(dir.path(), "run/eke/journal.jsonl", &fs::read_to_string(&path).unwrap());
        tree::put(dir.path(), "proc/sys/kernel/random/boot_id", "11111111-2222-3333-4444-555555555555\n");
        assert!(!journal::entries(&Root::at(dir.path())).unwrap().is_empty(), "{path:?}");
    }
    for path in formats("files") {
        let bytes = fs::read(&path).unwrap();
        assert_eq!(of_files::parse(&bytes).unwrap().len(), bytes.split(|b| *b == b'\n').count() - 1);
    }
}

#[test]
fn every_setting_of_a_kept_journal_can_be_restored() {
    for path in formats("knobs") {
        for line in fs::read_to_string(&path).unwrap().lines() {
            let (name, at) = line.split_once(' ').unwrap();
            let knob = eke_apply::knob::find(name).unwrap_or_else(|| panic!("no knob {name} any more"));
            assert_eq!((knob.path, knob.restore), (at, Restore::WriteOld), "{name}");
        }
    }
}

// ---- machines ----

fn machines(with: &str) -> Vec<PathBuf> {
    let dirs = versions().into_iter().flat_map(|version| sorted(&version));
    let found: Vec<PathBuf> = dirs.filter(|path| path.join(with).exists()).collect();
    assert!(!found.is_empty(), "no kept machine has {with}");
    found
}

/// The text of a setting without what the kernel shows beside it: `none [kyber]` is `kyber`.
fn value(text: &str) -> &str {
    let selected = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    selected.map_or(text.trim(), |(selected, _)| selected)
}

/// A fake machine as after `eke up`.
fn applied(machine: &Path) -> Arc<FakeKernel> {
    let fake = FakeKernel::new();
    let after = tree::read(&machine.join("after"), &[]);
    let device = |path: &str| path.strip_prefix("sys/block/zram")?.split_once('/')?.0.parse().ok();
    let newest = after.keys().filter_map(|path| device(path)).max();
    for _ in 1..=newest.unwrap_or(0u32) {
        fake.root().read("sys/class/zram-control/hot_add").unwrap();
    }
    for (path, content) in after {
        let Some(text) = content.map(|bytes| String::from_utf8(bytes).unwrap()) else { continue };
        if path == "proc/swaps" {
            for line in text.lines().skip(1) {
                let [path, _, size, used, priority] = line.split_whitespace().collect::<Vec<_>>()[..] else {
                    panic!("{line}")
                };
                fake.add_area(path, size.parse().unwrap(), used.parse().unwrap(), priority.parse().unwrap());
            }
        } else {
            fake.put(&path, &text);
        }
    }
    for file in ["journal.jsonl", "applied.json"] {
        if let Ok(text) = fs::read_to_string(machine.join(file)) {
            fake.put(&format!("run/eke/{file}"), &text);
        }
    }
    fake
}

#[test]
fn kept_journals_are_reverted() {
    for machine in machines("journal.jsonl") {
        let fake = applied(&machine);
        let root = fake.root();
        let in_force = journal::entries(&root).unwrap();
        assert!(!in_force.is_empty(), "{machine:?}: the boot's id belongs to after/");
        let outcomes = revert::all(&root, &Journal::open(&root).unwrap()).unwrap();
        assert_eq!(outcomes.len(), in_force.len());
        for (entry, outcome) in &outcomes {
            let fine = matches!(outcome, Outcome::Restored(_))
                || matches!((&entry.intent.undo, outcome), (Undo::Nothing, Outcome::AsBefore));
            assert!(fine, "{machine:?}: {}: {outcome:?}", entry.intent.step);
        }
        let now = fake.tree();
        for (path, content) in tree::read(&machine.join("before"), &[]) {
            let Some(bytes) = content else { continue };
            let found = now.get(&path).cloned().flatten().unwrap_or_default();
            let [was, is] = [bytes, found].map(|b| String::from_utf8(b).unwrap());
            assert_eq!(value(&is), value(&was), "{machine:?}: {path}");
        }
        for path in tree::read(&machine.join("after"), &[]).keys().filter(|p| p.ends_with("/disksize")) {
            assert_eq!(now.contains_key(path), machine.join("before").join(path).exists(), "{path}");
        }
        assert!(!root.exists("run/eke/journal.jsonl"));
    }
}

#[test]
fn kept_plans_are_adopted() {
    for machine in machines("applied.json") {
        let text = fs::read_to_string(machine.join("applied.json")).unwrap();
        let expected: Applied = serde_json::from_str(&text).unwrap();
        let loaded: Applied = state::load(&applied(&machine).root(), state::APPLIED).unwrap();
        assert!(loaded == expected && !loaded.plans.is_empty(), "{machine:?}");
    }
}

#[test]
fn kept_file_journals_are_reverted() {
    for machine in machines("files.jsonl") {
        let before = file_tree(&machine.join("before"));
        let dir = tree::in_memory();
        plant(dir.path(), &file_tree(&machine.join("after")));
        let root = Root::at(dir.path());
        let text = fs::read_to_string(machine.join("files.jsonl")).unwrap();
        tree::put(dir.path(), "var/lib/eke/files.jsonl", &text);
        let mut owners: Vec<String> =
            of_files::parse(text.as_bytes()).unwrap().into_iter().map(|r| r.owner).collect();
        owners.sort();
        owners.dedup();
        for owner in owners {
            for reverted in files::revert(&root, &owner).unwrap() {
                let done = matches!(reverted.outcome, FileOutcome::Restored | FileOutcome::Removed);
                assert!(done, "{machine:?}: {reverted:?}");
            }
        }
        assert_eq!(file_tree(dir.path()), before, "{machine:?}");
        assert!(!root.exists("var/lib/eke/files.jsonl"));
    }
}
