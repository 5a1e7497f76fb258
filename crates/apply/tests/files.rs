//! The promise of the journal of files: wherever a change is interrupted, `revert` restores every byte, and leaves
//! alone what somebody else changed.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which fail by it")]

mod files_tree;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use eke_apply::boot::enable;
use eke_apply::files::{self, AppliedFile, Change, Content, Effect, Outcome, Reverted};
use eke_apply::testing::{FilesOnly, Sys, simulated};
use eke_linux::Root;
use eke_linux::discard::Discard;
use eke_linux::source::{Files, Source};
use eke_testkit::fake_kernel::{FakeKernel, Faults};
use files_tree::{Node, plant, put, tree};
use proptest::prelude::*;

/// A machine that dies during an effect and then answers nothing.
struct Crashing {
    left: AtomicUsize,
}

impl Crashing {
    fn root(dir: &Path, effects: usize) -> Root {
        simulated(dir, Arc::new(Self { left: AtomicUsize::new(effects) }))
    }

    fn alive(&self) -> io::Result<()> {
        if self.left.load(Ordering::Relaxed) == 0 { Err(io::Error::other("crashed")) } else { Ok(()) }
    }

    fn effect(&self, torn: impl FnOnce(), whole: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.alive()?;
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            torn();
            return Err(io::Error::other("crashed"));
        }
        whole()
    }
}

impl Source for Crashing {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.alive().and_then(|()| Files.read(path))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.alive().and_then(|()| Files.list(path))
    }

    fn sleep(&self, _: Duration) {}
}

impl Sys for Crashing {
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.effect(|| {}, || FilesOnly.write(path, bytes))
    }
    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let half = || drop(FilesOnly.append(path, &bytes[..bytes.len() / 2]));
        self.effect(half, || FilesOnly.append(path, bytes))
    }
    fn replace(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        let beside = || put(Path::new(&format!("{}.eke-new", path.display())), "half", mode);
        self.effect(beside, || FilesOnly.replace(path, bytes, mode))
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.effect(|| {}, || FilesOnly.remove(path))
    }
    fn create_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.effect(|| {}, || FilesOnly.create_dir(path, mode))
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.effect(|| {}, || FilesOnly.remove_dir(path))
    }
    fn swapon(&self, _: &Path, _: Option<i16>, _: Option<Discard>) -> io::Result<()> {
        Err(io::Error::other("no swap here"))
    }
    fn swapoff(&self, _: &Path) -> io::Result<()> {
        Err(io::Error::other("no swap here"))
    }
}

fn file(text: &str, mode: u32) -> Node {
    Node::File { text: text.into(), mode }
}

fn start() -> BTreeMap<String, Node> {
    [
        ("etc", Node::Dir),
        ("etc/a", file("a\n", 0o644)),
        ("etc/script", file("#!/bin/sh", 0o755)),
        ("etc/empty", file("", 0o600)),
        ("etc/dir", Node::Dir),
        ("etc/link", Node::Link("a".into())),
        ("etc/out", Node::Link("/etc/dir/../script".into())),
        ("etc/circle", Node::Link("circle".into())),
        ("boot", Node::Link("/etc/dir".into())),
    ]
    .map(|(path, node)| (path.to_owned(), node))
    .into()
}

/// On tmpfs if possible, because the journal syncs every record.
fn planted() -> (tempfile::TempDir, Root) {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    plant(dir.path(), &start());
    let root = Root::at(dir.path());
    (dir, root)
}

fn outcomes(reverted: Vec<Reverted>) -> Vec<(String, Outcome)> {
    reverted.into_iter().map(|r| (r.path, r.outcome)).collect()
}

/// System V init: the script, then `update-rc.d`, which this root only lists.
#[test]
fn enable_interrupted_anywhere_leaves_its_command_to_the_next_call() {
    for effects in 0.. {
        let (dir, root) = planted();
        for program in ["usr/local/bin/eke", "usr/local/bin/eke-agent", "usr/sbin/update-rc.d"] {
            put(&dir.path().join(program), "", 0o755);
        }
        fs::create_dir_all(dir.path().join("etc/rc2.d")).unwrap();
        fs::create_dir_all(dir.path().join("etc/init.d")).unwrap();
        let write = |root: &Root| {
            enable::write(root, &enable::changes(root, "/usr/local/bin")?).map(|written| written.to_run.len())
        };
        let first = write(&Crashing::root(dir.path(), effects));
        let second = write(&root).unwrap();
        assert!(first.is_ok() || second == 1, "{effects} effects: {first:?}");
        assert!(enable::state(&root).unwrap().enabled && write(&root).unwrap() == 0);
        if first.is_ok() && second == 0 {
            break;
        }
    }
}

const JOURNAL: &str = "var/lib/eke/files.jsonl";

#[test]
fn applied_changes_are_written_listed_and_undone() {
    let (dir, root) = planted();
    let changes = [
        Change::text("etc/a", "b\n"),
        Change::text_with_mode("etc/new/deep/c", "c", 0o755),
        Change::symlink("etc/new/l", "../a"),
        Change::removal("etc/script"),
        Change::text("etc/empty", ""),
    ];
    let effects: Vec<Effect> =
        files::apply(&root, "o", &changes, "why").unwrap().into_iter().map(|a| a.effect).collect();
    assert_eq!(
        effects,
        [Effect::Changed, Effect::Created, Effect::Created, Effect::Removed, Effect::Unchanged]
    );
    let now = tree(dir.path());
    assert_eq!((&now["etc/a"], &now["etc/new/deep/c"]), (&file("b\n", 0o644), &file("c", 0o755)));
    assert_eq!((&now["etc/new/l"], now.get("etc/script")), (&Node::Link("../a".into()), None));
    let listed = files::listed(&root, "o").unwrap();
    assert_eq!(listed.len(), 4);
    assert!(listed.iter().all(|l| l.stands && l.reason == "why"), "{listed:?}");
    let reverted = outcomes(files::revert(&root, "o").unwrap());
    assert_eq!(
        reverted,
        [
            ("etc/script".to_owned(), Outcome::Restored),
            ("etc/new/l".to_owned(), Outcome::Removed),
            ("etc/new/deep/c".to_owned(), Outcome::Removed),
            ("etc/a".to_owned(), Outcome::Restored),
        ]
    );
    assert_eq!(tree(dir.path()), start());
    assert!(!root.exists(JOURNAL), "an empty journal must go");
    assert_eq!(files::revert(&root, "o").unwrap(), []);
}

#[test]
fn a_text_follows_links_and_stays_below_the_root() {
    let (dir, root) = planted();
    let changes = [
        Change::text("/etc/out", "x"),
        Change::text("boot/conf", "y"),
        Change::text("etc/../../../etc/link", "z"),
    ];
    let places: Vec<String> =
        files::apply(&root, "o", &changes, "r").unwrap().into_iter().map(|a: AppliedFile| a.path).collect();
    assert_eq!(places, ["etc/script", "etc/dir/conf", "etc/a"]);
    assert_eq!(files::read(&root, "etc/link").unwrap().as_deref(), Some("z"));
    files::revert(&root, "o").unwrap();
    assert_eq!(tree(dir.path()), start());
}

#[test]
fn a_file_changed_by_others_is_kept_and_its_old_text_saved() {
    let (dir, root) = planted();
    let changes =
        [Change::text("etc/a", "eke"), Change::text("etc/new", "eke"), Change::text("etc/script", "eke")];
    files::apply(&root, "o", &changes, "r").unwrap();
    put(&dir.path().join("etc/a"), "mine", 0o644);
    put(&dir.path().join("etc/new"), "mine", 0o644);
    assert!(files::listed(&root, "o").unwrap().iter().filter(|l| l.stands).all(|l| l.path == "etc/script"));
    let reverted = outcomes(files::revert(&root, "o").unwrap());
    assert_eq!(reverted[0], ("etc/script".to_owned(), Outcome::Restored));
    let Outcome::Kept(new) = &reverted[1].1 else { panic!("{reverted:?}") };
    assert!(new.contains("remove it if nobody needs it"), "{new}");
    let Outcome::Kept(a) = &reverted[2].1 else { panic!("{reverted:?}") };
    assert!(a.contains("somebody else changed it") && a.contains("var/lib/eke/kept/etc/a"), "{a}");
    assert_eq!(fs::read_to_string(root.path("var/lib/eke/kept/etc/a")).unwrap(), "a\n");
    assert_eq!(fs::read_to_string(root.path("etc/a")).unwrap(), "mine");
    assert!(!root.exists(JOURNAL));
}

#[test]
fn a_manual_change_between_two_of_ours_survives() {
    let (dir, root) = planted();
    files::apply(&root, "o", &[Change::text("etc/a", "eke")], "r").unwrap();
    put(&dir.path().join("etc/a"), "eke and mine", 0o644);
    files::apply(&root, "o", &[Change::text("etc/a", "eke 2 and mine")], "r").unwrap();
    assert!(matches!(files::revert(&root, "o").unwrap()[0].outcome, Outcome::Kept(_)));
    assert_eq!(fs::read_to_string(root.path("etc/a")).unwrap(), "eke and mine");
}

#[test]
fn the_second_process_waits_and_then_names_the_first() {
    let machine = FakeKernel::new();
    let root = machine.root();
    let first = files::lock(&root).unwrap();
    let refused = files::lock_to_undo(&root).unwrap_err().to_string();
    let expected = format!("process {} changes files through eke's journal", std::process::id());
    assert!(refused.starts_with(&expected), "{refused}");
    drop(first);
    drop(files::lock(&root).unwrap());
}

/// Its commands are saved only for an undo that is interrupted.
#[test]
fn an_undo_that_removes_the_last_record_needs_no_room() {
    let machine = FakeKernel::new();
    let root = machine.root();
    machine.put("run/systemd/system/x", "");
    let unit = Change::text("etc/systemd/system/eke.service", "[Service]\n");
    files::apply(&root, enable::OWNER, &[unit], "r").unwrap();
    let full = ("commands-due.json".to_owned(), libc::ENOSPC, 9);
    machine.set_faults(Faults { errors: vec![full], ..Faults::default() });
    let undone = enable::undo(&root).unwrap();
    assert_eq!(undone.files.iter().map(|f| f.outcome.clone()).collect::<Vec<_>>(), [Outcome::Removed]);
    assert_eq!(undone.to_run.len(), 1, "{undone:?}");
    assert!(!root.exists("var/lib/eke/files.jsonl"));
}

#[test]
fn refusals_come_before_any_change() {
    let (dir, root) = planted();
    #[expect(clippy::disallowed_methods, reason = "a fake root must be created")]
    fs::write(root.path("etc/latin"), b"f\xfcr").unwrap();
    files::apply(&root, "other", &[Change::text("etc/empty", "theirs")], "for theirs").unwrap();
    for (path, sentence) in [
        ("etc/latin", "not UTF-8"),
        ("etc/dir", "not a regular file"),
        ("etc/circle", "form a cycle"),
        ("../..", "root directory"),
        ("etc/empty", "already changed by eke's \"other\" (for theirs)"),
    ] {
        let changes = [Change::text("etc/a", "eke"), Change::text(path, "eke")];
        let error = files::apply(&root, "o", &changes, "r").unwrap_err().to_string();
        assert!(error.contains(sentence), "{error}");
        assert_eq!(fs::read_to_string(dir.path().join("etc/a")).unwrap(), "a\n", "{path}");
    }
    assert_eq!(files::listed(&root, "o").unwrap(), []);
}

#[test]
fn a_failing_change_undoes_those_before_it() {
    let (dir, root) = planted();
    let changes = [Change::text("etc/a", "eke"), Change::text("etc/script/below", "eke")];
    let error = files::apply(&root, "o", &changes, "r").unwrap_err().to_string();
    assert!(error.contains("etc/script"), "{error}");
    let changes = [Change::text("new/a", "eke"), Change::text("new/a/below", "eke")];
    files::apply(&root, "o", &changes, "r").unwrap_err();
    assert_eq!(tree(dir.path()), start());
    assert!(!root.exists(JOURNAL));
}

#[test]
fn a_broken_journal_undoes_nothing_and_names_the_line() {
    let (_dir, root) = planted();
    put(&root.path(JOURNAL), "what?\n", 0o600);
    let error = files::revert(&root, "o").unwrap_err().to_string();
    assert!(error.contains("files.jsonl: line 1") && error.contains("repair or remove"), "{error}");
}

#[test]
fn an_intent_that_never_happened_is_nothing_to_undo() {
    let (dir, root) = planted();
    let change = Change::symlink("etc/new/l", "x");
    files::apply(&root, "o", std::slice::from_ref(&change), "r").unwrap();
    let journal = fs::read_to_string(root.path(JOURNAL)).unwrap();
    files::revert(&root, "o").unwrap();
    put(&root.path(JOURNAL), &journal, 0o600);
    assert_eq!(outcomes(files::revert(&root, "o").unwrap()), [("etc/new/l".to_owned(), Outcome::Unchanged)]);
    assert_eq!(tree(dir.path()), start());
}

#[derive(Debug, Clone)]
enum Act {
    Apply(&'static str, Vec<Change>),
    Revert(&'static str),
}

fn change() -> impl Strategy<Value = Change> {
    let path = prop::sample::select(vec![
        "etc/a",
        "etc/script",
        "etc/link",
        "etc/out",
        "n/e/w",
        "n/x",
        "boot/b",
        "etc/circle",
    ]);
    let new = prop_oneof![
        4 => (prop::sample::select(vec!["", "1", "2\nü"]), prop::option::of(prop::sample::select(vec![0o644, 0o755])))
            .prop_map(|(text, mode)| Content::Text { text: text.into(), mode }),
        1 => prop::sample::select(vec!["a", "/n/x"]).prop_map(|to| Content::Symlink(to.into())),
        1 => Just(Content::Absent),
    ];
    (path, new).prop_map(|(path, new)| Change { path: path.into(), new })
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let owner = || prop::sample::select(vec!["one", "two"]);
    let act = prop_oneof![
        4 => (owner(), prop::collection::vec(change(), 1..4)).prop_map(|(o, c)| Act::Apply(o, c)),
        1 => owner().prop_map(Act::Revert),
    ];
    prop::collection::vec(act, 1..4)
}

fn perform(root: &Root, acts: &[Act]) {
    for act in acts {
        let _ = match act {
            Act::Apply(owner, changes) => files::apply(root, owner, changes, "r").map(drop),
            Act::Revert(owner) => files::revert(root, owner).map(drop),
        };
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// One process is cut off after any effect, the next one goes on, and then everything is undone.
    #[test]
    fn interrupted_anywhere_every_byte_is_restored(first in acts(), crash_at in 1usize..40, second in acts()) {
        let (dir, healthy) = planted();
        perform(&Crashing::root(dir.path(), crash_at), &first);
        perform(&healthy, &second);
        for owner in ["one", "two"] {
            for reverted in files::revert(&healthy, owner).unwrap() {
                prop_assert!(!matches!(reverted.outcome, Outcome::Kept(_)), "{reverted:?}");
            }
        }
        prop_assert_eq!(tree(dir.path()), start());
        prop_assert!(!healthy.exists(JOURNAL));
    }
}
