//! One case: steps, done to a mount and to a plain directory, and the comparison of both.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, StatxFlags, open, statat, statx};
use serde::{Deserialize, Serialize};

use super::allowed;
use super::op::{At, Op, Step, Via};
use super::perform::Answered;
use super::user::{Roots, SHARED, USERS, User};
use crate::model::pattern;
use crate::model::tree::{self, Entry};

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
pub struct Environment<'a> {
    /// Each change of a file that was looked at has a time of its own.
    pub fine_times: bool,
    /// Files may use passthrough.
    pub passthrough: bool,
    /// Workers die meanwhile.
    pub deaths: bool,
    pub count: &'a Count,
    pub users: &'a [User],
    pub mounted: &'a Path,
    pub backing: &'a Path,
    pub plain: &'a Path,
}

/// Why a case ends before its last step.
enum End {
    Differs(Difference),
    /// What comes next would mean nothing.
    Unknown,
}

impl From<Difference> for End {
    fn from(difference: Difference) -> Self {
        Self::Differs(difference)
    }
}

struct Run<'a> {
    /// What each user opened last in each slot.
    opened: RefCell<BTreeMap<(u8, u8), At>>,
    environment: &'a Environment<'a>,
    roots: Roots,
}

/// Runs it, and leaves nothing behind.
pub fn run(environment: &Environment<'_>, case: &Case) -> Result<(), Difference> {
    let run = Run::begin(environment);
    let ran = run.steps(case);
    environment.count.cases.fetch_add(1, Relaxed);
    environment.users.iter().for_each(User::end);
    // A difference may be that they cannot be removed.
    for root in [&run.roots.mounted, &run.roots.plain, &run.roots.backing] {
        let _ = std::fs::remove_dir_all(root);
    }
    match ran {
        Err(End::Differs(difference)) => Err(difference),
        Err(End::Unknown) | Ok(()) => Ok(()),
    }
}

impl<'a> Run<'a> {
    fn begin(environment: &'a Environment<'a>) -> Self {
        static CASES: AtomicU32 = AtomicU32::new(0);
        let name = format!("case{}", CASES.fetch_add(1, Relaxed));
        let at = |dir: &Path| dir.join(&name);
        let roots = Roots {
            mounted: at(environment.mounted),
            backing: at(environment.backing),
            plain: at(environment.plain),
        };
        for root in [&roots.mounted, &roots.plain] {
            furnish(root);
        }
        environment.users.iter().for_each(|user| user.begin(roots.clone()));
        Self { opened: RefCell::default(), environment, roots }
    }

    fn steps(&self, case: &Case) -> Result<(), End> {
        for (number, step) in case.steps.iter().enumerate() {
            self.step(case, step).map_err(|end| match end {
                End::Differs(Difference { signature, words }) => {
                    let by = USERS[usize::from(step.by)].uid;
                    let words = format!("step {number}: {by} {:?} {:?}: {words}", step.via, step.op);
                    End::Differs(Difference { signature, words })
                }
                End::Unknown => End::Unknown,
            })?;
            if (number + 1) % usize::from(case.walk_every) == 0 {
                self.walk()?;
            }
        }
        Ok(self.walk()?)
    }

    fn step(&self, case: &Case, step: &Step) -> Result<(), End> {
        let step = &if self.environment.passthrough { allowed::passthrough(step) } else { step.clone() };
        if step.via == Via::Below && !self.is_file_below(&step.op) {
            return Ok(());
        }
        let looked_at = if case.look_each { self.around(step) } else { Vec::new() };
        let before = self.look(&looked_at);
        let (mounted, plain) = self.environment.users[usize::from(step.by)].act(step);
        self.environment.count.steps.fetch_add(1, Relaxed);
        self.environment.count.done.fetch_add(mounted.is_ok().into(), Relaxed);
        if step.via == Via::Below {
            self.settle(&step.op);
        }
        let Some(plain) = plain else { return Ok(()) };
        if self.environment.deaths && allowed::may_be_done_twice(&step.op, &mounted, &plain) {
            return Err(End::Unknown);
        }
        compare_answers(step, &mounted, &plain)?;
        Ok(self.compare_looks(step, &looked_at, &before)?)
    }

    /// The names that an operation uses, or under which its file was opened, and their directories.
    fn around(&self, step: &Step) -> Vec<PathBuf> {
        let mut opened = self.opened.borrow_mut();
        if let Op::Open { slot, at, .. } = &step.op {
            opened.insert((step.by, *slot), *at);
        }
        let of_slots = step.op.slots().into_iter().filter_map(|slot| opened.get(&(step.by, slot)).copied());
        let named: Vec<At> = step.op.names().into_iter().chain(of_slots).filter(|at| !at.1).collect();
        let parents = named.iter().map(|at| at.path().parent().unwrap_or(Path::new("")).to_owned());
        let mut all: Vec<_> = named.iter().map(|at| at.path().to_owned()).chain(parents).collect();
        all.sort();
        all.dedup();
        all
    }

    /// Content is changed below only in files: what is in a pipe is not in its directory.
    fn is_file_below(&self, op: &Op) -> bool {
        let (Op::Put { at, .. } | Op::PutMapped { at, .. } | Op::Truncate { at, .. }) = op else {
            return true;
        };
        let path = self.roots.backing.join(at.path());
        std::fs::metadata(path).is_ok_and(|m| m.is_file())
    }

    /// An open shows what was changed below (close-to-open).
    fn settle(&self, op: &Op) {
        for at in op.names() {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
            if let Ok(file) = open(self.roots.mounted.join(at.path()), flags, Mode::empty()) {
                // copy_file_range(2) goes by the size that the kernel knows, and does not ask.
                let _ = statx(file, c"", AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC, StatxFlags::SIZE);
            }
        }
    }

    fn look(&self, at: &[PathBuf]) -> Vec<[Option<Stat>; 2]> {
        let stat = |path: PathBuf| statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok();
        at.iter().map(|at| [&self.roots.backing, &self.roots.plain].map(|root| stat(root.join(at)))).collect()
    }

    fn compare_looks(
        &self,
        step: &Step,
        at: &[PathBuf],
        before: &[[Option<Stat>; 2]],
    ) -> Result<(), Difference> {
        let after = self.look(at);
        for ((path, before), after) in at.iter().zip(before).zip(&after) {
            let fine = self.environment.fine_times;
            let [backing, plain] = [0, 1].map(|n| changes(before[n].as_ref(), after[n].as_ref(), fine));
            let mounted = statat(CWD, self.roots.mounted.join(path), AtFlags::SYMLINK_NOFOLLOW).ok();
            let words = |what: &str, one: &str, other: &str| Difference {
                signature: format!("{what} after {} {:?}", step.op.kind(), step.via),
                words: format!("{what} of {}: {one}, plain: {other}", path.display()),
            };
            if backing != plain {
                return Err(words("changes in the backing directory", &backing, &plain));
            }
            let of = |stat: &Option<Stat>| stat.as_ref().map_or_else(|| "nothing".to_owned(), tree::stat);
            if of(&mounted) != of(&after[1]) {
                return Err(words("attributes", &of(&mounted), &of(&after[1])));
            }
        }
        Ok(())
    }

    /// All of the three trees. Times on the mount may be a second old, as the page on coherence says.
    fn walk(&self) -> Result<(), Difference> {
        let plain = tree::walk(&self.roots.plain);
        let words = |entry: &Entry| entry.words.clone();
        let exact = |entry: &Entry| format!("{} {}", entry.words, entry.exact);
        let end = Instant::now() + Duration::from_millis(1500);
        loop {
            let [mounted, backing] = [&self.roots.mounted, &self.roots.backing].map(|root| tree::walk(root));
            differ("tree below and plain", (&backing, &plain), words)?;
            differ("mounted tree and plain", (&mounted, &plain), words)?;
            match differ("mounted tree and below, with times", (&mounted, &backing), exact) {
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

/// What goes through a pipe of the mount does not reach the one below, nor do its times.
fn is_pipe(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Fifo
}

/// What an operation did to what a name leads to.
fn changes(before: Option<&Stat>, after: Option<&Stat>, fine: bool) -> String {
    match (before, after) {
        (Some(b), Some(a)) if fine && b.st_ino == a.st_ino && !is_pipe(a) => {
            let modified = (b.st_mtime, b.st_mtime_nsec) != (a.st_mtime, a.st_mtime_nsec);
            let changed = (b.st_ctime, b.st_ctime_nsec) != (a.st_ctime, a.st_ctime_nsec);
            format!("{} modified {modified} changed {changed}", tree::stat(a))
        }
        (Some(_), Some(a)) if !fine || is_pipe(a) => tree::stat(a),
        (_, Some(a)) => format!("{} new", tree::stat(a)),
        (_, None) => "nothing".to_owned(),
    }
}

fn compare_answers(step: &Step, mounted: &Answered, plain: &Answered) -> Result<(), Difference> {
    if mounted == plain {
        return Ok(());
    }
    let short = |answer: &Answered| match answer {
        Ok(_) => "ok".to_owned(),
        Err(e) => format!("{e:?}"),
    };
    Err(Difference {
        signature: format!("{} {:?}: {} for {}", step.op.kind(), step.via, short(mounted), short(plain)),
        words: format!("answers {mounted:?}, plain: {plain:?}"),
    })
}

type Tree = BTreeMap<PathBuf, Entry>;

fn differ(
    what: &str,
    (one, other): (&Tree, &Tree),
    words: impl Fn(&Entry) -> String,
) -> Result<(), Difference> {
    let all: BTreeSet<_> = one.keys().chain(other.keys()).collect();
    let at = |tree: &Tree, path: &PathBuf| tree.get(path).map_or_else(|| "nothing".to_owned(), &words);
    let both = all.into_iter().map(|path| (path, at(one, path), at(other, path)));
    let differing: Vec<_> = both
        .filter(|(_, one, other)| one != other)
        .map(|(path, one, other)| format!("{}: {one}\n      plain: {other}", path.display()))
        .collect();
    if differing.is_empty() {
        return Ok(());
    }
    Err(Difference { signature: what.to_owned(), words: format!("{what}: {}", differing.join("\n    ")) })
}
