//! One case: steps, done to a mount and to a plain directory, and the comparison of both.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, open, statat};
use serde::{Deserialize, Serialize};

use super::op::{At, Op, Step, Via};
use super::user::{Both, Roots, SHARED, USERS, User};
use crate::model::{pattern, tree};

/// Steps, and how often all is compared in between.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// After each step, compare attributes and whether times changed.
    pub look_each: bool,
    /// After so many steps, compare the whole trees.
    pub walk_every: u8,
    pub steps: Vec<Step>,
}

/// A difference.
#[derive(Debug, Clone)]
pub struct Difference {
    /// The same for differences that are likely the same.
    pub signature: String,
    pub words: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

/// What was done so far.
#[derive(Debug, Default)]
pub struct Count {
    pub cases: AtomicU64,
    pub steps: AtomicU64,
    /// Of these, those that both trees did without an error.
    pub done: AtomicU64,
}

/// Where cases are run.
pub struct Ground<'a> {
    pub count: &'a Count,
    pub users: &'a [User],
    pub mounted: &'a Path,
    pub below: &'a Path,
    pub plain: &'a Path,
}

struct Run<'a> {
    ground: &'a Ground<'a>,
    roots: Roots,
}

/// Runs it, and leaves nothing behind.
pub fn run(ground: &Ground<'_>, case: &Case) -> Result<(), Difference> {
    let run = Run::begin(ground);
    let ran = run.steps(case);
    ground.count.cases.fetch_add(1, Relaxed);
    ground.users.iter().for_each(User::end);
    // A difference may be that they cannot be removed.
    for root in [&run.roots.mounted, &run.roots.plain, &run.roots.below] {
        let _ = std::fs::remove_dir_all(root);
    }
    ran
}

impl<'a> Run<'a> {
    fn begin(ground: &'a Ground<'a>) -> Self {
        static CASES: AtomicU32 = AtomicU32::new(0);
        let name = format!("case{}", CASES.fetch_add(1, Relaxed));
        let at = |dir: &Path| dir.join(&name);
        let roots = Roots { mounted: at(ground.mounted), below: at(ground.below), plain: at(ground.plain) };
        for root in [&roots.mounted, &roots.plain] {
            furnish(root);
        }
        ground.users.iter().for_each(|user| user.begin(roots.clone()));
        Self { ground, roots }
    }

    fn steps(&self, case: &Case) -> Result<(), Difference> {
        for (number, step) in case.steps.iter().enumerate() {
            self.step(case, step).map_err(|mut difference| {
                let by = USERS[usize::from(step.by)].uid;
                difference.words =
                    format!("step {number}: {by} {:?} {:?}: {}", step.via, step.op, difference.words);
                difference
            })?;
            if (number + 1) % usize::from(case.walk_every) == 0 {
                self.walk()?;
            }
        }
        self.walk()
    }

    fn step(&self, case: &Case, step: &Step) -> Result<(), Difference> {
        if step.via == Via::Below && !self.is_file_below(&step.op) {
            return Ok(());
        }
        let looked_at = if case.look_each { around(&step.op) } else { Vec::new() };
        let before = self.look(&looked_at);
        let both = self.ground.users[usize::from(step.by)].act(step);
        let asked = both.1.is_some();
        self.ground.count.steps.fetch_add(1, Relaxed);
        self.ground.count.done.fetch_add(both.0.is_ok().into(), Relaxed);
        compare_answers(step, both)?;
        if step.via == Via::Below {
            self.settle(&step.op);
        }
        if asked { self.compare_looks(step, &looked_at, &before) } else { Ok(()) }
    }

    /// Content is changed below only in files: what is in a pipe is not in its directory.
    fn is_file_below(&self, op: &Op) -> bool {
        let (Op::Put { at, .. } | Op::PutMapped { at, .. } | Op::Truncate { at, .. }) = op else {
            return true;
        };
        let path = self.roots.below.join(at.path());
        std::fs::metadata(path).is_ok_and(|m| m.is_file())
    }

    /// An open shows what was changed below (close-to-open).
    fn settle(&self, op: &Op) {
        for at in op.names() {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
            let _ = open(self.roots.mounted.join(at.path()), flags, Mode::empty());
        }
    }

    fn look(&self, at: &[PathBuf]) -> Vec<[Option<Stat>; 2]> {
        let stat = |path: PathBuf| statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok();
        at.iter().map(|at| [&self.roots.below, &self.roots.plain].map(|root| stat(root.join(at)))).collect()
    }

    fn compare_looks(
        &self,
        step: &Step,
        at: &[PathBuf],
        before: &[[Option<Stat>; 2]],
    ) -> Result<(), Difference> {
        let after = self.look(at);
        for ((path, before), after) in at.iter().zip(before).zip(&after) {
            let [below, plain] = [0, 1].map(|n| changes(before[n].as_ref(), after[n].as_ref()));
            let mounted = statat(CWD, self.roots.mounted.join(path), AtFlags::SYMLINK_NOFOLLOW).ok();
            let words = |what: &str, one: &str, other: &str| Difference {
                signature: format!("{what} after {} {:?}", step.op.kind(), step.via),
                words: format!("{what} of {}: {one}, plain: {other}", path.display()),
            };
            if below != plain {
                return Err(words("changes below", &below, &plain));
            }
            let of = |stat: &Option<Stat>| stat.as_ref().map_or_else(|| "nothing".to_owned(), tree::stat);
            if of(&mounted) != of(&after[1]) {
                return Err(words("attributes", &of(&mounted), &of(&after[1])));
            }
        }
        Ok(())
    }

    /// All of the three trees.
    fn walk(&self) -> Result<(), Difference> {
        let plain = tree::walk(&self.roots.plain, false);
        let below = tree::walk(&self.roots.below, false);
        differ("tree below and plain", &below, &plain)?;
        let mounted = tree::walk(&self.roots.mounted, false);
        differ("mounted tree and plain", &mounted, &plain)?;
        let end = Instant::now() + Duration::from_millis(1500);
        loop {
            let [mounted, below] = [&self.roots.mounted, &self.roots.below].map(|r| tree::walk(r, true));
            match differ("mounted tree and below, with times", &mounted, &below) {
                Err(_) if Instant::now() < end => std::thread::sleep(Duration::from_millis(100)),
                done => return done,
            }
        }
    }
}

fn furnish(root: &Path) {
    std::fs::create_dir(root).unwrap();
    let set = |path: &Path, bits| std::fs::set_permissions(path, PermissionsExt::from_mode(bits)).unwrap();
    for (name, bits, owner, group) in [
        ("sticky", 0o1777, 0, 0),
        ("group", 0o2775, 0, SHARED[0]),
        ("private", 0o700, USERS[1].uid, USERS[1].gid),
    ] {
        let path = root.join(name);
        std::fs::create_dir(&path).unwrap();
        chown(&path, Some(owner), Some(group)).unwrap();
        set(&path, bits);
    }
    for (name, bits, owner) in
        [("a", 0o666, 1), ("b", 0o644, 2), ("sticky/a", 0o666, 2), ("group/a", 0o664, 1), ("d/a", 0o600, 1)]
    {
        let (path, ids) = (root.join(name), &USERS[owner]);
        if name.starts_with("d/") {
            std::fs::create_dir(root.join("d")).unwrap();
            set(&root.join("d"), 0o777);
        }
        std::fs::write(&path, pattern(owner as u8, 0, 10_000 * owner)).unwrap();
        chown(&path, Some(ids.uid), Some(ids.gid)).unwrap();
        set(&path, bits);
    }
    set(root, 0o777);
}

/// The names that an operation uses, and their directories.
fn around(op: &Op) -> Vec<PathBuf> {
    let named: Vec<At> = op.names().into_iter().filter(|at| !at.1).collect();
    let parents = named.iter().map(|at| at.path().parent().unwrap_or(Path::new("")).to_owned());
    let mut all: Vec<_> = named.iter().map(|at| at.path().to_owned()).chain(parents).collect();
    all.sort();
    all.dedup();
    all
}

/// What an operation did to what a name leads to.
fn changes(before: Option<&Stat>, after: Option<&Stat>) -> String {
    match (before, after) {
        (Some(b), Some(a)) if b.st_ino == a.st_ino => {
            let modified = (b.st_mtime, b.st_mtime_nsec) != (a.st_mtime, a.st_mtime_nsec);
            let changed = (b.st_ctime, b.st_ctime_nsec) != (a.st_ctime, a.st_ctime_nsec);
            format!("{} modified {modified} changed {changed}", tree::stat(a))
        }
        (_, Some(a)) => format!("{} new", tree::stat(a)),
        (_, None) => "nothing".to_owned(),
    }
}

fn compare_answers(step: &Step, (mounted, plain): Both) -> Result<(), Difference> {
    let Some(plain) = plain else { return Ok(()) };
    if mounted == plain {
        return Ok(());
    }
    let short = |answer: &super::perform::Answered| match answer {
        Ok(_) => "ok".to_owned(),
        Err(e) => format!("{e:?}"),
    };
    Err(Difference {
        signature: format!("{} {:?}: {} for {}", step.op.kind(), step.via, short(&mounted), short(&plain)),
        words: format!("answers {mounted:?}, plain: {plain:?}"),
    })
}

fn differ(
    what: &str,
    one: &BTreeMap<PathBuf, String>,
    other: &BTreeMap<PathBuf, String>,
) -> Result<(), Difference> {
    let all: BTreeSet<_> = one.keys().chain(other.keys()).collect();
    let differing = all.into_iter().filter(|path| one.get(*path) != other.get(*path));
    let words: Vec<_> = differing
        .map(|path| format!("{}: {:?}\n      plain: {:?}", path.display(), one.get(path), other.get(path)))
        .collect();
    if words.is_empty() {
        return Ok(());
    }
    Err(Difference { signature: what.to_owned(), words: format!("{what}: {}", words.join("\n    ")) })
}
