//! Is the mount a directory like any other? Random operations on it and on a plain one, with changes made below in between;
//! and what `docs/cache-coherence.md` promises of those.
//!
//! `EKE_SEED=N` tries another sequence, `EKE_CASES=N` more of them.

#![expect(clippy::unwrap_used, reason = "test code")]

mod model;

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use eke_mount::settings::Settings;
use eke_testkit::real::{lacking, skip};
use model::apply::{Answered, Tree, read_all};
use model::mount::{Mount, NEEDS};
use model::op::{Op, any_op};
use model::{pattern, tree, wait_until};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

/// The trees of one case.
struct Trees<'a> {
    mounted: Tree,
    plain: Tree,
    below: Tree,
    mount: &'a Mount,
}

impl<'a> Trees<'a> {
    fn new(mount: &'a Mount, plain: &Path) -> Self {
        static CASES: AtomicU32 = AtomicU32::new(0);
        let name = format!("case{}", CASES.fetch_add(1, Ordering::Relaxed));
        let at = |parent: &Path| Tree::new(parent.join(&name));
        let trees = Self { mounted: at(mount.place()), plain: at(plain), below: at(mount.below()), mount };
        for tree in [&trees.mounted, &trees.plain] {
            fs::create_dir(tree.root()).unwrap();
        }
        trees
    }

    fn step(&mut self, op: &Op) -> [Answered; 2] {
        let Op::Below(change) = op else { return [self.mounted.apply(op), self.plain.apply(op)] };
        self.mounted.close_all();
        self.plain.close_all();
        let changed = [self.below.below(change), self.plain.below(change)];
        if changed[0] != changed[1] {
            return changed;
        }
        // close-to-open: an open that comes after the change sees it, whatever was held
        [&self.mounted, &self.plain].map(|t| read_all(&t.root().join(change.name().path())))
    }

    fn end(mut self) {
        let plain = tree::walk(self.plain.root(), false);
        wait_until("the mount shows the same tree", || tree::walk(self.mounted.root(), false) == plain);
        assert_eq!(tree::walk(self.below.root(), false), plain, "what is below");
        wait_until("the mount shows times and numbers of what is below", || {
            tree::walk(self.mounted.root(), true) == tree::walk(self.below.root(), true)
        });
        self.mounted.close_all();
        self.plain.close_all();
        fs::remove_dir_all(self.mounted.root()).unwrap();
        fs::remove_dir_all(self.plain.root()).unwrap();
        assert!(!self.below.root().exists(), "{}", self.mount.said());
    }
}

fn case(mount: &Mount, plain: &Path, ops: &[Op]) -> Result<(), TestCaseError> {
    let mut trees = Trees::new(mount, plain);
    for (at, op) in ops.iter().enumerate() {
        let [mounted, plain] = trees.step(op);
        prop_assert_eq!(mounted, plain, "step {} of {}: {:?} (mount, then plain)", at, ops.len(), op);
    }
    trees.end();
    Ok(())
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

fn like_a_plain_directory(cases: u64, change: impl FnOnce(&mut Settings)) {
    let mount = Mount::with(change);
    let plain = mount.beside("plain");
    let seed = number("EKE_SEED", 1);
    eprintln!("seed {seed} (EKE_SEED)");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases: u32::try_from(number("EKE_CASES", cases)).unwrap(),
        failure_persistence: None,
        max_shrink_iters: 400,
        ..Config::default()
    };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let ops = proptest::collection::vec(any_op(), 1..80);
    if let Err(failed) = runner.run(&ops, |ops| case(&mount, &plain, &ops)) {
        panic!("{failed}\neke-cache said: {}", mount.said());
    }
}

#[test]
fn random_operations_as_on_a_plain_directory() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("random_operations_as_on_a_plain_directory", &why);
    }
    like_a_plain_directory(150, |_| {});
}

#[test]
fn random_operations_as_on_a_plain_directory_with_async_packing_and_a_watch() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("random_operations_as_on_a_plain_directory_with_async_packing_and_a_watch", &why);
    }
    like_a_plain_directory(75, |settings| {
        settings.compress = eke_mount::settings::Compress::Async;
        settings.watch = true;
    });
}

#[test]
fn random_operations_as_on_a_plain_directory_straight_through() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("random_operations_as_on_a_plain_directory_straight_through", &why);
    }
    like_a_plain_directory(75, |settings| settings.straight = eke_mount::settings::Straight::Always);
}

/// A file with content, and the same one through the mount.
fn file(mount: &Mount, len: usize) -> (File, File) {
    let below = mount.below().join("file");
    fs::write(&below, pattern(1, 0, len)).unwrap();
    let above = File::open(mount.place().join("file")).unwrap();
    (OpenOptions::new().write(true).open(below).unwrap(), above)
}

fn content(of: &File, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    of.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

#[test]
fn an_open_after_a_change_below_sees_it() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("an_open_after_a_change_below_sees_it", &why);
    }
    let mount = Mount::new();
    let (below, above) = file(&mount, 200_000);
    assert_eq!(content(&above, 200_000), pattern(1, 0, 200_000));
    drop(above);
    for (round, len) in [200_000, 50_000, 300_000, 0, 70_000].into_iter().enumerate() {
        let seed = round as u8 + 2;
        below.set_len(len as u64).unwrap();
        below.write_all_at(&pattern(seed, 0, len), 0).unwrap();
        let seen = fs::read(mount.place().join("file")).unwrap();
        assert!(seen == pattern(seed, 0, len), "round {round}: {}", tree::summary(&seen));
        assert_eq!(fs::metadata(mount.place().join("file")).unwrap().len(), len as u64, "round {round}");
    }
}

#[test]
fn names_that_change_below_are_seen_within_their_time() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("names_that_change_below_are_seen_within_their_time", &why);
    }
    let mount = Mount::new();
    let (at, below) = (|name: &str| mount.place().join(name), |name: &str| mount.below().join(name));
    fs::write(below("old"), b"old").unwrap();
    assert!(at("old").exists() && !at("new").exists());
    fs::rename(below("old"), below("new")).unwrap();
    wait_until("the new name", || fs::read(at("new")).is_ok_and(|b| b == b"old") && !at("old").exists());
    fs::write(below("other"), b"other").unwrap();
    fs::rename(below("other"), below("new")).unwrap();
    wait_until("another file with this name", || fs::read(at("new")).is_ok_and(|b| b == b"other"));
    fs::remove_file(below("new")).unwrap();
    wait_until("no name", || fs::read_dir(mount.place()).unwrap().count() == 0 && !at("new").exists());
}

#[test]
fn a_watch_shows_changes_to_open_files() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("a_watch_shows_changes_to_open_files", &why);
    }
    let mount = Mount::with(|settings| settings.watch = true);
    let (below, above) = file(&mount, 200_000);
    for seed in 2..6 {
        let was = content(&above, 200_000);
        assert!(was == pattern(seed - 1, 0, 200_000));
        below.write_all_at(&pattern(seed, 0, 200_000), 0).unwrap();
        wait_until("what was written below", || content(&above, 200_000) == pattern(seed, 0, 200_000));
    }
    below.set_len(100).unwrap();
    wait_until("a shorter file", || above.read_at(&mut [0; 10], 100).unwrap() == 0);
    assert_eq!(content(&above, 100), pattern(5, 0, 100));
    below.set_len(0).unwrap();
    below.write_all_at(&pattern(9, 0, 400_000), 0).unwrap();
    wait_until("a longer file", || above.metadata().unwrap().len() == 400_000);
    wait_until("its end", || content(&above, 400_000) == pattern(9, 0, 400_000));
}

#[test]
fn what_is_written_above_is_below_at_once() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("what_is_written_above_is_below_at_once", &why);
    }
    let mount = Mount::with(|settings| settings.watch = true);
    let path = mount.place().join("file");
    let above = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    for (seed, at) in (1..40).zip((0..).step_by(40_000)) {
        above.write_all_at(&pattern(seed, at, 50_000), at).unwrap();
        assert!(fs::read(mount.below().join("file")).unwrap()[at as usize..] == pattern(seed, at, 50_000));
        let mut seen = vec![0; 50_000];
        above.read_exact_at(&mut seen, at).unwrap();
        assert!(seen == pattern(seed, at, 50_000), "its own writer at {at}");
    }
}
