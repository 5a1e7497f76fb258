//! How long the kernel may use names and attributes without asking.
//!
//! While the watch reports changes of names and attributes, the kernel keeps them for [`HELD`], and is told of each change.
//! Otherwise it keeps them for the short time that the mount was given.
//!
//! A report may come while a request is being answered, after it has looked and before the kernel has the answer. The
//! request compares the number of reports before and after. What remains, the second report ends (`watch::again`).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use fuser::{FileAttr, FileType};

use crate::node::is_foreign;
use crate::sync::lock;

/// Names and attributes whose changes are reported. The bound is for changes that the kernel never reports
/// (docs/cache-coherence.md).
const HELD: Duration = Duration::from_secs(24 * 3600);
/// Absent names: no list of them exists, so after lost events they cannot be taken back.
const ABSENT: Duration = Duration::from_secs(30);
/// Less than NFS (`acregmin` is 3), since nobody asked for more. A name that was created below is found at once.
pub(super) const DEFAULT: Duration = Duration::from_secs(1);
/// After lost events nothing is held for this long, so that whoever floods the watch does not have all names sent again and again.
const CALM: Duration = Duration::from_secs(10);
/// The blocks of a changed file are counted when its pages are written back: half a minute later
/// (`vm.dirty_expire_centisecs`), without a report.
const COUNTED: Duration = Duration::from_secs(60);

/// How long the kernel may use what an answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// The name.
    pub name: Duration,
    /// The attributes.
    pub attributes: Duration,
}

impl Lifetime {
    /// In a directory that ignores case the kernel asks for each name, or not.
    pub fn in_directory(self, ignores_case: impl FnOnce() -> bool) -> Self {
        let asks = !self.name.is_zero() && ignores_case();
        Self { name: if asks { Duration::ZERO } else { self.name }, ..self }
    }

    /// For both: no longer than the shorter one.
    pub fn of_both(self) -> Duration {
        self.name.min(self.attributes)
    }
}

/// The moment before a request looked at the backing directory.
#[derive(Debug, Clone, Copy)]
pub struct Asked(u64);

/// Decides each answer's lifetime.
#[derive(Debug)]
pub struct Lifetimes {
    short: Duration,
    reported: AtomicBool,
    /// Events were lost a short time ago.
    suspended: AtomicBool,
    changes: AtomicU64,
    /// The last time that anything may have changed.
    everything: Mutex<Option<Instant>>,
}

impl Lifetimes {
    /// `short`: while changes are not reported.
    pub fn new(short: Duration) -> Self {
        Self {
            short,
            reported: AtomicBool::new(false),
            suspended: AtomicBool::new(false),
            changes: AtomicU64::new(0),
            everything: Mutex::default(),
        }
    }

    /// From now on, changes of names and attributes are reported, or not any more.
    pub fn set_reported(&self, reported: bool) {
        self.reported.store(reported, Ordering::SeqCst);
    }

    /// True while they are, and none was lost a short time ago.
    pub fn are_reported(&self) -> bool {
        self.reported.load(Ordering::SeqCst) && !self.suspended.load(Ordering::SeqCst)
    }

    /// Call it before the kernel is told of a change.
    pub fn note_change(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// The same, if anything may have changed: lists that the kernel got before are old. True if names are held, so that all must be
    /// sent. The first time is the start of the watch; later ones are losses.
    pub fn note_everything(&self, now: Instant) -> bool {
        let were_held = self.are_reported();
        let is_loss = self.everything().replace(now).is_some();
        self.suspended.store(is_loss, Ordering::SeqCst);
        self.note_change();
        were_held
    }

    /// Lets names be held again when no event was lost for a while. Call it every second.
    pub fn resume(&self, now: Instant) {
        let everything = *self.everything();
        if everything.is_some_and(|at| now.saturating_duration_since(at) > CALM) {
            self.suspended.store(false, Ordering::SeqCst);
        }
    }

    fn everything(&self) -> MutexGuard<'_, Option<Instant>> {
        lock(&self.everything)
    }

    /// True if the kernel may keep the list of a directory, which was opened before at `opened`.
    pub fn keeps_list(&self, opened: Option<Instant>) -> bool {
        let everything = *self.everything();
        self.are_reported() && everything.zip(opened).is_some_and(|(everything, opened)| opened > everything)
    }

    /// Call it before a request looks at the backing directory.
    pub fn asked(&self) -> Asked {
        Asked(self.changes.load(Ordering::SeqCst))
    }

    fn is_held(&self, asked: Asked) -> bool {
        self.are_reported() && self.changes.load(Ordering::SeqCst) == asked.0
    }

    /// The lifetime of a name that was found with these attributes, and of these. `unseen`: whether the attributes may change without
    /// a report; called only if that decides.
    pub fn of(
        &self,
        asked: Asked,
        attr: &FileAttr,
        now: SystemTime,
        unseen: impl FnOnce() -> bool,
    ) -> Lifetime {
        if is_set_id(attr) {
            return Lifetime { name: Duration::ZERO, attributes: Duration::ZERO };
        }
        // Other file systems inside are not watched.
        if !self.is_held(asked) || is_foreign(attr.ino.0) {
            return Lifetime { name: self.short, attributes: self.short };
        }
        let settled = now.duration_since(attr.ctime).is_ok_and(|age| age > COUNTED) && !unseen();
        Lifetime { name: HELD, attributes: if settled { HELD } else { self.short } }
    }

    /// The lifetime of the answer that there is no such name. Zero: the kernel asks each time.
    pub fn of_absent(&self, asked: Asked) -> Duration {
        if self.is_held(asked) {
            ABSENT
        } else if self.short > DEFAULT {
            self.short.min(ABSENT)
        } else {
            Duration::ZERO
        }
    }
}

/// A write clears the bits of set-id programs without the kernel's knowledge, and a program would then run with another's
/// rights.
fn is_set_id(attr: &FileAttr) -> bool {
    attr.kind == FileType::RegularFile && attr.perm & 0o6000 != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    use fuser::INodeNo;

    const SHORT: Duration = Duration::from_secs(1);

    fn file(perm: u16, changed_s: u64) -> FileAttr {
        let at = UNIX_EPOCH + Duration::from_secs(changed_s);
        FileAttr {
            ino: INodeNo(7),
            size: 0,
            blocks: 0,
            atime: at,
            mtime: at,
            ctime: at,
            crtime: at,
            kind: FileType::RegularFile,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn both(lifetime: Duration) -> Lifetime {
        Lifetime { name: lifetime, attributes: lifetime }
    }

    #[test]
    fn what_is_not_reported_is_believed_for_a_short_time() {
        let lifetimes = Lifetimes::new(SHORT);
        let asked = lifetimes.asked();
        assert_eq!(lifetimes.of(asked, &file(0o644, 0), at(1000), || false), both(SHORT));
        assert_eq!(lifetimes.of_absent(asked), Duration::ZERO);
        lifetimes.set_reported(true);
        assert_eq!(lifetimes.of(asked, &file(0o644, 0), at(1000), || false), both(HELD));
        assert_eq!(lifetimes.of_absent(asked), ABSENT);
        lifetimes.set_reported(false);
        assert_eq!(lifetimes.of(asked, &file(0o644, 0), at(1000), || false), both(SHORT));
    }

    #[test]
    fn who_asks_for_more_than_the_default_gets_it_for_absent_names_too() {
        for (short, absent) in [(0, 0), (1, 0), (2, 2), (30, 30), (3600, 30)] {
            let lifetimes = Lifetimes::new(Duration::from_secs(short));
            assert_eq!(lifetimes.of_absent(lifetimes.asked()), Duration::from_secs(absent), "{short}");
        }
    }

    #[test]
    fn a_change_while_it_is_answered_makes_the_answer_short() {
        let lifetimes = Lifetimes::new(SHORT);
        lifetimes.set_reported(true);
        let asked = lifetimes.asked();
        lifetimes.note_change();
        assert_eq!(lifetimes.of(asked, &file(0o644, 0), at(1000), || false), both(SHORT));
        assert_eq!(lifetimes.of_absent(asked), Duration::ZERO);
        assert_eq!(lifetimes.of(lifetimes.asked(), &file(0o644, 0), at(1000), || false), both(HELD));
    }

    #[test]
    fn a_list_is_kept_since_everything_changed() {
        let (lifetimes, start) = (Lifetimes::new(SHORT), Instant::now());
        let at = |s| Some(start + Duration::from_secs(s));
        assert!(!lifetimes.keeps_list(at(1)), "nothing is reported");
        lifetimes.set_reported(true);
        assert!(!lifetimes.keeps_list(at(1)), "the watch has not begun");
        assert!(lifetimes.note_everything(start));
        assert!(lifetimes.keeps_list(at(1)) && !lifetimes.keeps_list(at(0)) && !lifetimes.keeps_list(None));
        assert!(lifetimes.note_everything(start + Duration::from_secs(2)));
        lifetimes.resume(start + Duration::from_secs(60));
        assert!(!lifetimes.keeps_list(at(1)) && lifetimes.keeps_list(at(3)));
    }

    #[test]
    fn after_a_loss_nothing_is_held_until_it_is_calm() {
        let (lifetimes, start) = (Lifetimes::new(SHORT), Instant::now());
        let at = |s| start + Duration::from_secs(s);
        lifetimes.set_reported(true);
        assert!(lifetimes.note_everything(at(0)) && lifetimes.are_reported(), "the start is no loss");
        assert!(lifetimes.note_everything(at(100)) && !lifetimes.are_reported());
        assert!(!lifetimes.note_everything(at(101)), "all names were sent a moment ago");
        lifetimes.resume(at(111));
        assert!(!lifetimes.are_reported());
        lifetimes.resume(at(112));
        assert!(lifetimes.are_reported() && lifetimes.note_everything(at(113)));
    }

    #[test]
    fn attributes_of_a_new_or_foreign_file_and_of_a_set_id_program_are_not_held() {
        let lifetimes = Lifetimes::new(SHORT);
        lifetimes.set_reported(true);
        let of = |attr: &FileAttr, now| lifetimes.of(lifetimes.asked(), attr, at(now), || false);
        assert_eq!(of(&file(0o644, 1000), 1030), Lifetime { name: HELD, attributes: SHORT });
        assert_eq!(
            of(&file(0o644, 1000), 900),
            Lifetime { name: HELD, attributes: SHORT },
            "a clock that was set back"
        );
        assert_eq!(of(&file(0o4755, 0), 1000), both(Duration::ZERO));
        let mapped = lifetimes.of(lifetimes.asked(), &file(0o644, 0), at(1000), || true);
        assert_eq!(mapped, Lifetime { name: HELD, attributes: SHORT }, "stores are not reported");
        let foreign = FileAttr { ino: INodeNo(1 << 63), ..file(0o644, 0) };
        assert_eq!(of(&foreign, 1000), both(SHORT));
        assert_eq!(Lifetime { name: HELD, attributes: SHORT }.of_both(), SHORT);
    }
}
