//! Unites several launches of a program into one file set.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::file_set::{FileSet, Kind, Touched, UsedBy, is_same_file, is_same_file_system};
use crate::launch::{Launch, LaunchEnd};
use crate::pages::Pages;
use crate::program::{Program, ProgramId};

/// Each file is reviewed once in this many launches. Pages that no launch used between two reviews are dropped.
pub const REVIEW_LAUNCHES: u32 = 3;

/// The share of the newest launch in a file's weight after `1/FADING` launches; before that all launches count alike.
const FADING: f32 = 0.2;

/// A file of less weight is dropped: a file that all launches used goes after eleven launches without it.
const LEAST_WEIGHT: f32 = 0.1;

/// The least weight of a file that is new in a launch, unless the launch was given it: an upgrade brings libraries with new names. One recorded launch
/// without it brings it below one half.
const NEW_WEIGHT: f32 = 0.6;

/// Files of more weight are usual. One that the first launch was given is not.
const USUAL_WEIGHT: f32 = 0.5;

/// The number of learned launches before which a small one lowers no weight.
const SURE_LAUNCHES: u32 = 3;

/// The share of a small launch in a file's weight, and the weight below which it lowers none: most starts may be small (`--version`, a conversion without
/// a window), and the others still need the file.
const SMALL_SHARE: f32 = 0.1;
const SMALL_FLOOR: f32 = 0.2;

/// The number of launches that the order of first use remembers.
const ORDER_LAUNCHES: u32 = 4;

/// The file set of a program after one more launch. `known` is the set after the previous `launches_so_far` launches.
///
/// - A file's weight is the exponentially fading share of launches that used it: `w += a·(used − w)`, where `a` is the greater of 1/(launches + 1)
///   and 0.2.
/// - A new file weighs more than one half at once, and one that the launch was given half as much as others: it may be another one
///   each time.
/// - Pages are united. Each file is reviewed in one of [`REVIEW_LAUNCHES`] launches, chosen by a hash of its name. A review drops the stale pages and
///   marks all pages that this launch does not use as stale until a launch uses them. So pages used in one of three launches stay, pages unused in
///   six launches go, and one small launch (a program that hands over to a running instance) removes nothing.
/// - Another file at the path, as after an upgrade, has only the new pages. Its device number is valid for one boot and does not count.
/// - A launch says nothing against files that concern only other accounts ([`Touched::concerns`]): it could not have used their profiles.
/// - A launch that ended or got quiet without most of the usual files is small: it was killed, or printed its version. It drops no pages. From the fourth
///   launch on it lowers weights a little, down to 0.2, and only those of files that no other account uses.
/// - Metadata and directories are traced only when they are cold, so a warm launch does not reduce their weight.
/// - An incomplete launch adds and never removes. A cold one that was cut at the time limit is incomplete. Where the kernel reports no uses, so is each
///   that did not read most of the usual files from the disk: what it left out may have been in memory.
/// - The order is that of first use: a fading mean of relative positions, because the positions of single launches are not stored.
pub fn unite(known: Option<&FileSet>, launches_so_far: u32, launch: &Launch) -> FileSet {
    let Some(known) = known.filter(|set| !set.files.is_empty()) else { return launch.set.clone() };
    // Comparing names as bytes is fast; paths would be hashed and compared part by part.
    let mut used: HashMap<&OsStr, (usize, &Touched)> =
        launch.set.files.iter().enumerate().map(|(at, file)| (file.path.as_os_str(), (at, file))).collect();
    let evidence = LaunchEvidence::new(launches_so_far, launch, || has_most_of(known, launch.uid, &used));
    let place = |at: usize, of: usize| at as f64 / of.max(1) as f64;
    let mut placed: Vec<(f64, Touched)> = Vec::new();
    for (at, file) in known.files.iter().enumerate() {
        let before = place(at, known.files.len());
        let (now, touched) = match used.remove(name_now(file, &used)) {
            Some((at, new)) => (
                evidence.mean_place(before, place(at, launch.set.files.len())),
                Some(evidence.used(file, new)),
            ),
            None => (before, evidence.unused(file)),
        };
        placed.extend(touched.map(|touched| (now, touched)));
    }
    let fresh: BTreeMap<usize, &Touched> = used.into_values().collect();
    placed.extend(
        fresh.into_iter().map(|(at, file)| (place(at, launch.set.files.len()), evidence.new_file(file))),
    );
    placed.sort_by(|a, b| a.0.total_cmp(&b.0));
    FileSet { files: placed.into_iter().map(|(_, touched)| touched).collect() }
}

/// The name of a file in this launch: a file system is the same one also if its device is learned by another name, as by the kernel's before.
fn name_now<'a>(file: &'a Touched, launch: &HashMap<&'a OsStr, (usize, &Touched)>) -> &'a OsStr {
    let is_it = |new: &Touched| {
        file.kind == Kind::Device
            && new.kind == Kind::Device
            && file.stamp.ino != 0
            && new.stamp.ino == file.stamp.ino
    };
    let renamed = || launch.iter().find(|(_, (_, new))| is_it(new)).map(|(name, _)| *name);
    let name = file.path.as_os_str();
    Some(name).filter(|_| file.kind != Kind::Device).or_else(renamed).unwrap_or(name)
}

/// Whether an account's launch has more than half of the files that are usual for it. A part of a file counts as such; a large one counts no more than
/// others.
fn has_most_of(known: &FileSet, account: u32, launch: &HashMap<&OsStr, (usize, &Touched)>) -> bool {
    let is_usual =
        |file: &&Touched| file.kind == Kind::File && file.weight > USUAL_WEIGHT && file.concerns(account);
    let usual = || known.files.iter().filter(is_usual);
    let part = |file: &Touched| {
        let new = launch.get(file.path.as_os_str())?.1;
        Some(file.pages.both(&new.pages).count() as f64 / file.pages.count().max(1) as f64)
    };
    usual().next().is_none() || 2.0 * usual().filter_map(part).sum::<f64>() > usual().count() as f64
}

/// What a launch says against the files that it did not use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// It used all that it needs.
    Whole,
    /// It ended before most of that.
    Small,
    /// The record is incomplete, and says nothing.
    Incomplete,
}

/// What a launch contributes to every file.
struct LaunchEvidence<'a> {
    program: &'a Program,
    account: u32,
    launches_so_far: u32,
    /// The weight of this launch.
    share: f32,
    extent: Extent,
    /// Whether most of it came from the disk. Only such a launch shows which metadata it needs.
    is_cold: bool,
}

impl<'a> LaunchEvidence<'a> {
    fn new(launches_so_far: u32, launch: &'a Launch, has_most: impl Fn() -> bool) -> Self {
        let launches = launches_so_far.saturating_add(1) as f32;
        let is_cold = launch.cold_bytes.saturating_mul(2) >= launch.set.bytes();
        let extent = match launch.ended {
            LaunchEnd::Quiet | LaunchEnd::Exited if has_most() => Extent::Whole,
            LaunchEnd::Quiet | LaunchEnd::Exited => Extent::Small,
            LaunchEnd::Limit if !is_cold => Extent::Whole,
            LaunchEnd::WithoutUses if is_cold && has_most() => Extent::Whole,
            LaunchEnd::Limit | LaunchEnd::WithoutUses | LaunchEnd::Lost => Extent::Incomplete,
        };
        let share = FADING.max(1.0 / launches);
        Self { program: &launch.program, account: launch.uid, launches_so_far, share, extent, is_cold }
    }

    fn mean_place(&self, before: f64, now: f64) -> f64 {
        let launches = f64::from(self.launches_so_far.clamp(1, ORDER_LAUNCHES));
        (before * launches + now) / (launches + 1.0)
    }

    fn is_reviewed(&self, file: &Touched) -> bool {
        let due = ProgramId::of_name(file.path.as_os_str().as_bytes()).0 % u64::from(REVIEW_LAUNCHES);
        u64::from(self.launches_so_far % REVIEW_LAUNCHES) == due
    }

    /// Whether this launch, if it is whole, would have shown a use of the file.
    fn shows_use_of(&self, file: &Touched) -> bool {
        file.concerns(self.account) && (file.kind == Kind::File || self.is_cold)
    }

    /// The weight of a file that this launch did not use; `None` if that says nothing.
    fn lowered(&self, file: &Touched) -> Option<f32> {
        let is_of_others = file.used_by != UsedBy::One(self.account);
        match self.extent {
            _ if !self.shows_use_of(file) => None,
            Extent::Whole => Some(file.weight * (1.0 - self.share)),
            Extent::Small if is_of_others || self.launches_so_far < SURE_LAUNCHES => None,
            Extent::Small => Some((file.weight * (1.0 - SMALL_SHARE)).max(SMALL_FLOOR.min(file.weight))),
            Extent::Incomplete => None,
        }
    }

    fn used(&self, file: &Touched, new: &Touched) -> Touched {
        let is_same = file.kind == new.kind && is_same_content(self.program, file, new);
        let weight = file.weight + self.share * (1.0 - file.weight);
        let used_by = file.used_by.and(self.account);
        if !is_same {
            return Touched { weight, used_by, ..new.clone() };
        }
        let (pages, stale) = self.reviewed(file, &new.pages);
        Touched { pages, stale, weight, used_by, ..new.clone() }
    }

    /// The file's pages and stale pages after a launch that used `used`.
    fn reviewed(&self, file: &Touched, used: &Pages) -> (Pages, Pages) {
        let stale = file.stale.without(used);
        if !(self.extent == Extent::Whole && self.shows_use_of(file) && self.is_reviewed(file)) {
            return (file.pages.union(used), stale);
        }
        let pages = file.pages.without(&stale).union(used);
        let stale = pages.without(used);
        (pages, stale)
    }

    fn unused(&self, file: &Touched) -> Option<Touched> {
        let Some(weight) = self.lowered(file) else { return Some(file.clone()) };
        let (pages, stale) = match file.kind {
            Kind::File => self.reviewed(file, &Pages::default()),
            Kind::Directory | Kind::Device => (file.pages.clone(), file.stale.clone()),
        };
        let is_gone = weight < LEAST_WEIGHT || file.kind == Kind::File && pages.is_empty();
        (!is_gone).then(|| Touched { pages, stale, weight, ..file.clone() })
    }

    fn new_file(&self, file: &Touched) -> Touched {
        let is_given = file.weight <= 0.5;
        let weight = if is_given { self.share * file.weight } else { self.share.max(NEW_WEIGHT) };
        Touched { weight, used_by: UsedBy::Unknown.and(self.account), ..file.clone() }
    }
}

/// Another file beside the program is a new version of it, outside of packages, too.
fn is_same_content(program: &Program, a: &Touched, b: &Touched) -> bool {
    let is_own = || a.path.parent() == program.exe.parent() || program.script.as_ref() == Some(&a.path);
    let is_upgrade = || a.stamp.ino != b.stamp.ino && is_own();
    match a.kind {
        Kind::Device => is_same_file_system(&a.stamp, &b.stamp),
        _ => is_same_file(&a.path, &a.stamp, &b.stamp) && !is_upgrade(),
    }
}

#[cfg(test)]
#[path = "unite_tests.rs"]
mod tests;
