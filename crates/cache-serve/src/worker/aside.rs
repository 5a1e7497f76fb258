//! Whether the mount is of use: what the worker measures goes to the policy ([`eke_cache_policy::aside`]), and its advice to the supervisor.
//!
//! Where all fits, what is in memory here is read through the page cache of the directory itself before the mount leaves. Otherwise programs
//! would wait for the disk once more.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use eke_cache_mounts::Device;
use eke_cache_policy::aside::{Advice, Left, Reason, Sample, Usefulness};
use eke_cachefs::fs::Fs;
use eke_linux::Root;
use eke_model::units::Bytes;

use crate::served_mount::LastMove;
use crate::supervisor::channel::{FromWorker, send};
use crate::warm::step_back;

/// The longest time for that. The disk is idle meanwhile but for this.
const HAND_OVER_WITHIN: Duration = Duration::from_secs(300);

/// Files that the kernel may still know when the next worker takes over; and the seconds after which it does with more.
const FEW: u64 = 256;
const FORGOTTEN_WITHIN: u32 = 20;
/// Seconds until what the kernel forgets has been told.
const SETTLED_AFTER: u32 = 2;

/// What a block takes from a disk that seeks, from one that does not, and over a network or where the kernel does not tell, in µs.
const SEEKS_US: f64 = 5000.0;
const FLASH_US: f64 = 80.0;
const UNKNOWN_US: f64 = 1000.0;

/// What a block of a directory on this device takes at least from its disk, in µs: by `queue/rotational` of its disk
/// (Documentation/ABI/stable/sysfs-block).
pub(super) fn least_disk_us(root: &Root, device: Device) -> f64 {
    let of = |disk: &str| root.read(format!("sys/dev/block/{device}{disk}/queue/rotational")).ok();
    // A partition's disk is the directory above.
    match of("").or_else(|| of("/..")).as_deref().map(str::trim) {
        Some("1") => SEEKS_US,
        Some("0") => FLASH_US,
        _ => UNKNOWN_US,
    }
}

/// Where the mount is, as far as the worker knows.
#[derive(Debug)]
pub(super) struct Aside {
    /// The mount may stand aside at all.
    may: bool,
    /// Another worker may take over.
    may_end: bool,
    /// What a block takes at least from a disk of this kind, in µs.
    least_disk_us: f64,
    hands_over: AtomicBool,
    /// This worker was made for a mount that stands aside: it has no tables, and few sessions.
    is_small: bool,
    since: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    usefulness: Usefulness,
    left: Option<Left>,
    /// The mount has moved, and nobody has acted on it yet.
    has_moved: bool,
    /// It leaves when the supervisor says that nobody keeps it; with the memory for what is handed over.
    waits: Option<(Left, Bytes)>,
    /// How often it was asked whether it should end.
    asked: u32,
}

impl Aside {
    /// Of a mount that may stand aside or not, after its last move. `may_end`: the kernel can send requests to another worker (Linux 6.9).
    pub(super) fn new(
        (may, may_end): (bool, bool),
        least_disk_us: f64,
        last: Option<LastMove>,
        window: Option<Duration>,
    ) -> Self {
        let mut usefulness = Usefulness::serving();
        if let Some(window) = window {
            usefulness = usefulness.with_window(window);
        }
        let since = last.map_or_else(Instant::now, |last| last.at);
        if let Some(last) = last {
            usefulness.left(last.left, Duration::ZERO);
        }
        let left = last.filter(|last| last.is_aside).map(|last| last.left);
        if left.is_none() && last.is_some() {
            usefulness.returned(Duration::ZERO);
        }
        let is_small = left.is_some();
        let state = State { usefulness, left, has_moved: is_small, waits: None, asked: 0 };
        let (hands_over, state) = (AtomicBool::new(false), Mutex::new(state));
        Self { may, may_end, least_disk_us, hands_over, is_small, since, state }
    }

    /// True if the mount may stand aside.
    pub(super) fn may(&self) -> bool {
        self.may
    }

    /// True for a worker of a mount that stood aside when it started. It ends when the mount returns.
    pub(super) fn is_small(&self) -> bool {
        self.is_small
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The supervisor says where the mount is after an attempt to move it.
    pub(super) fn is_now(&self, left: Option<Left>) {
        let now = self.since.elapsed();
        let mut state = self.state();
        match (state.left, left) {
            (None, Some(left)) => state.usefulness.left(left, now),
            (Some(_), None) => state.usefulness.returned(now),
            _ => state.usefulness.refused(now),
        }
        state.waits = None;
        state.has_moved |= state.left.is_some() != left.is_some();
        state.asked = 0;
        state.left = left;
    }

    /// True while it stands aside.
    pub(super) fn is_aside(&self) -> bool {
        self.state().left.is_some()
    }

    /// Where it has moved to since the last call: aside or not. `None`: it has not.
    pub(super) fn has_moved(&self) -> Option<bool> {
        let mut state = self.state();
        std::mem::take(&mut state.has_moved).then_some(state.left.is_some())
    }

    /// True if this worker should make room for another one. For a small one: the mount stands aside, and the kernel has forgotten its files but
    /// for open ones. It takes over what the kernel still knows of these `known` files. Or for one with all that serving needs: the mount is
    /// back.
    pub(super) fn should_end(&self, known: u64) -> bool {
        let mut state = self.state();
        if !self.may_end || state.has_moved || state.left.is_some() == self.is_small {
            return false;
        }
        if self.is_small {
            return true;
        }
        state.asked += 1;
        (known <= FEW && state.asked > SETTLED_AFTER) || state.asked > FORGOTTEN_WITHIN
    }

    /// Passes a sample to the policy, and its advice to the supervisor. `sample` is given the time.
    pub(super) fn advise(self: &Arc<Self>, supervisor: &OwnedFd, sample: impl FnOnce(Duration) -> Sample) {
        if !self.may || self.hands_over.load(Relaxed) {
            return;
        }
        let (now, mut state) = (self.since.elapsed(), self.state());
        let mut sample = sample(now);
        if let Some(left) = state.left {
            // A worker that has not served knows it from the one before, which may have met the page cache alone.
            sample.miss_us = sample.miss_us.max(f64::from(left.disk_us)).max(self.least_disk_us);
            if left.disk_bytes > 0 {
                sample.miss_bytes = left.disk_bytes;
            }
        }
        let advice = state.usefulness.step(sample);
        let vain = state.usefulness.vain(now);
        let left =
            |reason| Left { reason, disk_us: sample.miss_us as u32, disk_bytes: sample.miss_bytes, vain };
        match advice {
            Advice::Stay => {}
            Advice::Leave(Reason::Fits) => {
                // What the page cache of the mount has is there for a moment, too.
                let room = sample.free.max(Bytes(sample.available.0 / 2));
                let left = left(Reason::Fits);
                state.waits = Some((left, room));
                tell(supervisor, &FromWorker::MayLeave);
            }
            Advice::Leave(reason) => tell(supervisor, &FromWorker::Leave(left(reason))),
            Advice::Return => tell(supervisor, &FromWorker::Return),
        }
    }

    /// Nobody keeps the mount: reads what is used, on another thread and behind others' reads, and then has the mount leave.
    pub(super) fn may_leave(self: &Arc<Self>, fs: Arc<Fs>, supervisor: Arc<OwnedFd>) {
        let Some((left, room)) = self.state().waits.take() else { return };
        self.hands_over.store(true, Relaxed);
        let (aside, until) = (Arc::clone(self), Instant::now() + HAND_OVER_WITHIN);
        let act = move || {
            step_back();
            fs.hand_over(room.0, || Instant::now() > until);
            tell(&supervisor, &FromWorker::Leave(left));
            aside.hands_over.store(false, Relaxed);
        };
        if std::thread::Builder::new().name("hand over".into()).spawn(act).is_err() {
            self.hands_over.store(false, Relaxed);
        }
    }
}

/// Without room for it the next windows say it again.
fn tell(supervisor: &OwnedFd, message: &FromWorker) {
    let _ = send(supervisor.as_fd(), message);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_seeks_is_known_by_its_partition_too() {
        let dir = tempfile::tempdir().unwrap();
        eke_testkit::tree::put(dir.path(), "sys/dev/block/8:0/queue/rotational", "1\n");
        eke_testkit::tree::put(dir.path(), "sys/dev/block/8:0/sda1/partition", "1\n");
        std::os::unix::fs::symlink("8:0/sda1", dir.path().join("sys/dev/block/8:1")).unwrap();
        eke_testkit::tree::put(dir.path(), "sys/dev/block/7:0/queue/rotational", "0\n");
        let of = |major, minor| least_disk_us(&Root::at(dir.path()), Device { major, minor });
        assert_eq!([of(8, 0), of(8, 1), of(7, 0), of(0, 50)], [SEEKS_US, SEEKS_US, FLASH_US, UNKNOWN_US]);
    }

    #[test]
    fn a_move_is_acted_on_once_and_a_refused_one_never() {
        let left = Left { reason: Reason::Fits, disk_us: 7, disk_bytes: 0, vain: 0 };
        let aside = Aside::new((true, true), 1.0, None, None);
        assert_eq!(aside.has_moved(), None);
        aside.is_now(None);
        assert_eq!(aside.has_moved(), None, "refused");
        aside.is_now(Some(left));
        assert!(!aside.should_end(1), "nobody has acted on it");
        assert_eq!((aside.has_moved(), aside.has_moved()), (Some(true), None));
        let asked = [FEW, FEW, FEW + 1, FEW].map(|known| aside.should_end(known));
        assert_eq!(asked, [false, false, false, true]);
        aside.is_now(None);
        assert_eq!((aside.has_moved(), aside.should_end(1)), (Some(false), false));
        let last = |is_aside| Some(LastMove { at: Instant::now(), left, is_aside });
        let small = Aside::new((true, true), 1.0, last(true), None);
        assert_eq!((small.is_small(), small.has_moved(), small.should_end(1)), (true, Some(true), false));
        small.is_now(None);
        assert_eq!((small.has_moved(), small.should_end(1)), (Some(false), true), "it is back");
        let next = Aside::new((true, true), 1.0, last(false), None);
        assert_eq!((next.is_small(), next.has_moved(), next.should_end(1)), (false, None, false));
        assert_eq!(next.state().usefulness.vain(Duration::ZERO), 1, "it knows of the return");
    }
}
