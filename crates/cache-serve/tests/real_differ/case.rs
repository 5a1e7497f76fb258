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
use crate::common::pattern;
use crate::common::tree::{self, Entry};

/// Steps, and how often the trees are compared in between.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// Compare attributes, and whether times changed, after each step?
    pub compare_each: bool,
    /// Steps between comparisons of the whole trees.
    pub walk_every: u8,
    pub steps: Vec<Step>,
}

/// A difference.
#[derive(Debug, Clone)]
pub struct Difference {
    /// Equal for differences that probably have the same cause.
    pub signature: String,
    pub description: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.description)
    }
}

/// Counters for the report.
#[derive(Debug, Default)]
pub struct Count {
    pub cases: AtomicU64,
    pub steps: AtomicU64,
    /// Steps without an error.
    pub done: AtomicU64,
}

/// The trees and users of a variant's cases.
pub struct Environment<'a> {
    /// Does each change of a file give it another time (multigrain timestamps)?
    pub fine_times: bool,
    /// May files use passthrough?
    pub passthrough: bool,
    /// Are workers killed meanwhile?
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
    /// It is unknown how the trees must be.
    Unknown,
}

impl From<Difference> for End {
    fn from(difference: Difference) -> Self {
        Self::Differs(difference)
    }
}

struct CaseRun<'a> {
    /// The name that each user opened last in each slot.
    opened: RefCell<BTreeMap<(u8, u8), At>>,
    environment: &'a Environment<'a>,
    roots: Roots,
}

/// Runs a case. Leaves no files behind.
pub fn run(environment: &Environment<'_>, case: &Case) -> Result<(), Difference> {
    let run = CaseRun::begin(environment);
    let ran = run.steps(case);
    environment.count.cases.fetch_add(1, Relaxed);
    environment.users.iter().for_each(User::end);
    // They may be impossible to remove: that can be the difference.
    for root in [&run.roots.mounted, &run.roots.plain, &run.roots.backing] {
        let _ = std::fs::remove_dir_all(root);
    }
    match ran {
        Err(End::Differs(difference)) => Err(difference),
        Err(End::Unknown) | Ok(()) => Ok(()),
    }
}

impl<'a> CaseRun<'a> {
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
            populate(root);
        }
        environment.users.iter().for_each(|user| user.begin(roots.clone()));
        Self { opened: RefCell::default(), environment, roots }
    }

    fn steps(&self, case: &Case) -> Result<(), End> {
        for (number, step) in case.steps.iter().enumerate() {
            self.step(case, step).map_err(|end| match end {
                End::Differs(Difference { signature, description }) => {
                    let by = USERS[usize::from(step.by)].uid;
                    let description =
                        format!("step {number}: {by} {:?} {:?}: {description}", step.via, step.op);
                    End::Differs(Difference { signature, description })
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
        if step.via == Via::Backing && !self.is_backing_file(&step.op) {
            return Ok(());
        }
        let names = if case.compare_each { self.affected_names(step) } else { Vec::new() };
        let before = self.stat_all(&names);
        let (mounted, plain) = self.environment.users[usize::from(step.by)].act(step);
        self.environment.count.steps.fetch_add(1, Relaxed);
        self.environment.count.done.fetch_add(mounted.is_ok().into(), Relaxed);
        if step.via == Via::Backing {
            self.revalidate(&step.op);
        }
        let Some(plain) = plain else { return Ok(()) };
        if self.environment.deaths && allowed::may_be_done_twice(&step.op, &mounted, &plain) {
            return Err(End::Unknown);
        }
        compare_answers(step, &mounted, &plain)?;
        Ok(self.compare_attributes(step, &names, &before)?)
    }

    /// The names that an operation uses, the name under which its file was opened, and their directories.
    fn affected_names(&self, step: &Step) -> Vec<PathBuf> {
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

    /// Past the mount only the content of regular files is changed: that of a pipe is not in the directory.
    fn is_backing_file(&self, op: &Op) -> bool {
        let (Op::Put { at, .. } | Op::PutMapped { at, .. } | Op::Truncate { at, .. }) = op else {
            return true;
        };
        let path = self.roots.backing.join(at.path());
        std::fs::metadata(path).is_ok_and(|m| m.is_file())
    }

    /// Opens the files of an operation on the mount, so that it shows the changes made past it (close-to-open).
    fn revalidate(&self, op: &Op) {
        for at in op.names() {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
            if let Ok(file) = open(self.roots.mounted.join(at.path()), flags, Mode::empty()) {
                // copy_file_range(2) uses the size that the kernel has cached.
                let _ = statx(file, c"", AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC, StatxFlags::SIZE);
            }
        }
    }

    /// The attributes of names in the backing directory and in the plain one.
    fn stat_all(&self, at: &[PathBuf]) -> Vec<[Option<Stat>; 2]> {
        let stat = |path: PathBuf| statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok();
        at.iter().map(|at| [&self.roots.backing, &self.roots.plain].map(|root| stat(root.join(at)))).collect()
    }

    fn compare_attributes(
        &self,
        step: &Step,
        at: &[PathBuf],
        before: &[[Option<Stat>; 2]],
    ) -> Result<(), Difference> {
        let after = self.stat_all(at);
        for ((path, before), after) in at.iter().zip(before).zip(&after) {
            let fine = self.environment.fine_times;
            let [backing, plain] = [0, 1].map(|n| changes(before[n].as_ref(), after[n].as_ref(), fine));
            let mounted = statat(CWD, self.roots.mounted.join(path), AtFlags::SYMLINK_NOFOLLOW).ok();
            let difference = |what: &str, one: &str, other: &str| Difference {
                signature: format!("{what} after {} {:?}", step.op.kind(), step.via),
                description: format!("{what} of {}: {one}, plain: {other}", path.display()),
            };
            if backing != plain {
                return Err(difference("changes in the backing directory", &backing, &plain));
            }
            let of = |stat: &Option<Stat>| stat.as_ref().map_or_else(|| "nothing".to_owned(), tree::stat);
            if of(&mounted) != of(&after[1]) {
                return Err(difference("attributes", &of(&mounted), &of(&after[1])));
            }
        }
        Ok(())
    }

    /// Compares the three trees. Times on the mount may be a second old, see `docs/cache-coherence.md`.
    fn walk(&self) -> Result<(), Difference> {
        let plain = tree::walk(&self.roots.plain);
        let text = |entry: &Entry| entry.text.clone();
        let exact = |entry: &Entry| format!("{} {}", entry.text, entry.exact);
        let end = Instant::now() + Duration::from_millis(1500);
        loop {
            let [mounted, backing] = [&self.roots.mounted, &self.roots.backing].map(|root| tree::walk(root));
            differ("backing tree and plain", (&backing, &plain), text)?;
            differ("mounted tree and plain", (&mounted, &plain), text)?;
            match differ("mounted tree and backing, with times", (&mounted, &backing), exact) {
                Err(_) if Instant::now() < end => std::thread::sleep(Duration::from_millis(100)),
                done => return done,
            }
        }
    }
}

fn populate(root: &Path) {
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

/// Bytes that go through a pipe of the mount do not reach the backing pipe, and neither do its times.
fn is_pipe(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Fifo
}

/// What an operation changed in a name's file.
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
        description: format!("answers {mounted:?}, plain: {plain:?}"),
    })
}

type Tree = BTreeMap<PathBuf, Entry>;

fn differ(
    what: &str,
    (one, other): (&Tree, &Tree),
    text: impl Fn(&Entry) -> String,
) -> Result<(), Difference> {
    let all: BTreeSet<_> = one.keys().chain(other.keys()).collect();
    let at = |tree: &Tree, path: &PathBuf| tree.get(path).map_or_else(|| "nothing".to_owned(), &text);
    let both = all.into_iter().map(|path| (path, at(one, path), at(other, path)));
    let differing: Vec<_> = both
        .filter(|(_, one, other)| one != other)
        .map(|(path, one, other)| format!("{}: {one}\n      plain: {other}", path.display()))
        .collect();
    if differing.is_empty() {
        return Ok(());
    }
    Err(Difference {
        signature: what.to_owned(),
        description: format!("{what}: {}", differing.join("\n    ")),
    })
}
