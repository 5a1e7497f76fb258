//! The loop: sample, decide, resize.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use eke_cache_policy::size::decide::{Decision, GovernorState, decide};
use eke_cache_policy::size::{Group, Memory, OwnUse, Signals, SizeReport};
use eke_cache_store::Store;
use eke_linux::Root;
use eke_model::units::{Bytes, MIB};

use super::SignalsReader;

/// Interval of samples while anything changes or little memory is left: about 0.1 % of a CPU.
pub const BUSY_INTERVAL: Duration = Duration::from_millis(200);

/// Interval of samples otherwise. A sample costs about 0.2 ms (`/proc/meminfo`, `/proc/vmstat` and three files of a cgroup with a limit),
/// so this is far less than 0.2 % of a CPU; and memory that others need is given back within a second.
pub const CALM_INTERVAL: Duration = Duration::from_secs(1);

/// A store whose size can be changed.
pub trait Resize {
    /// Memory that it uses now.
    fn held(&self) -> Bytes;

    /// Sets the most that it may use. When this returns, the kernel has the memory above that back.
    fn resize(&self, limit: Bytes);
}

impl Resize for Store {
    fn held(&self) -> Bytes {
        self.stats().held
    }

    fn resize(&self, limit: Bytes) {
        Store::resize(self, limit);
    }
}

impl<T: Resize + ?Sized> Resize for std::sync::Arc<T> {
    fn held(&self) -> Bytes {
        (**self).held()
    }

    fn resize(&self, limit: Bytes) {
        (**self).resize(limit);
    }
}

/// Governs the size of one store.
#[derive(Debug)]
pub struct Governor {
    asked: Memory,
    report: Mutex<SizeReport>,
    /// When the limit was changed last, in milliseconds of the clock.
    changed: AtomicU64,
    /// Memory besides the store that counts towards the requested size.
    beside: AtomicU64,
    /// The mount stands aside: the store gets nothing.
    is_aside: AtomicBool,
    memory: Mutex<MemoryNow>,
}

/// The memory of the machine or of the tightest group, as of the last sample.
#[derive(Debug, Clone, Copy, Default)]
pub struct MemoryNow {
    /// Unused.
    pub free: Bytes,
    /// Unused, or with clean file pages.
    pub available: Bytes,
    /// File pages that were read again after they had been dropped, since the machine started.
    pub refaulted: Bytes,
    /// Little is unused: the kernel drops what it could use.
    pub is_full: bool,
}

/// What a mount has read and served so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traffic {
    /// Read from this machine's disks.
    pub read: Bytes,
    /// Served, from the store or the disk.
    pub served: Bytes,
}

impl Governor {
    /// With the requested size.
    pub fn new(asked: Memory) -> Self {
        Self {
            asked,
            report: Mutex::new(SizeReport::default()),
            changed: AtomicU64::new(0),
            beside: AtomicU64::new(0),
            is_aside: AtomicBool::new(false),
            memory: Mutex::default(),
        }
    }

    /// The limit of a new store, from the memory that is available now.
    ///
    /// # Errors
    /// The machine's memory cannot be read.
    pub fn first(&self, root: &Root) -> eke_linux::error::Result<Bytes> {
        let signals = SignalsReader::new(root.clone()).read()?;
        let own = self.own_use(Bytes(0), Traffic::default());
        Ok(self.decide(&GovernorState::default(), Duration::ZERO, &signals, &own).limit)
    }

    /// Sets the memory that is used for files besides the store. It counts towards the requested size.
    pub fn set_beside(&self, beside: Bytes) {
        self.beside.store(beside.0, Ordering::Relaxed);
    }

    /// Takes all memory from the store while the mount stands aside.
    pub fn stand_aside(&self, is_aside: bool) {
        self.is_aside.store(is_aside, Ordering::Relaxed);
    }

    /// The memory as of the last sample.
    pub fn memory(&self) -> MemoryNow {
        *self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn decide(&self, state: &GovernorState, now: Duration, signals: &Signals, own: &OwnUse) -> Decision {
        let decision = decide(self.asked, state, now, signals, own);
        if self.is_aside.load(Ordering::Relaxed) { decision.aside() } else { decision }
    }

    fn own_use(&self, held: Bytes, Traffic { read, served }: Traffic) -> OwnUse {
        OwnUse { held, beside: Bytes(self.beside.load(Ordering::Relaxed)), read, served }
    }

    /// The store's size and the reason for it, as of the last sample.
    pub fn report(&self) -> SizeReport {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The body of the thread. `traffic` is asked at each sample. `now` is a monotonic clock. `stopped` waits for the given time or until the loop must stop, and returns
    /// whether it must.
    pub fn run(
        &self,
        root: &Root,
        store: &impl Resize,
        traffic: impl Fn() -> Traffic,
        now: impl Fn() -> Duration,
        mut stopped: impl FnMut(Duration) -> bool,
    ) {
        let (mut reader, mut state) = (SignalsReader::new(root.clone()), GovernorState::default());
        loop {
            let pause = match reader.read() {
                Ok(signals) => {
                    let decision = self.step(&signals, &state, now(), (store, traffic()));
                    state = decision.state;
                    if decision.moving { BUSY_INTERVAL } else { CALM_INTERVAL }
                }
                Err(e) => {
                    self.change(|report| report.unreadable = Some(e.to_string()));
                    CALM_INTERVAL
                }
            };
            if stopped(pause) {
                return;
            }
        }
    }

    fn step(
        &self,
        signals: &Signals,
        state: &GovernorState,
        now: Duration,
        (store, traffic): (&impl Resize, Traffic),
    ) -> Decision {
        let held = store.held();
        let own = self.own_use(held, traffic);
        *self.memory.lock().unwrap_or_else(PoisonError::into_inner) = MemoryNow {
            free: signals.free(),
            available: signals.available(),
            refaulted: signals.machine.refaulted,
            is_full: signals.is_full(),
        };
        let decision = self.decide(state, now, signals, &own);
        let changed = decision.limit.0.abs_diff(state.limit.0) >= MIB;
        if changed {
            self.changed.store(u64::try_from(now.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
        let since = now.saturating_sub(Duration::from_millis(self.changed.load(Ordering::Relaxed)));
        if decision.limit != state.limit || held > decision.limit {
            store.resize(decision.limit);
        }
        self.change(|report| {
            *report = SizeReport {
                asked: decision.asked,
                limit: decision.limit,
                beside: own.beside,
                held: held.min(decision.limit),
                why: decision.why,
                available: signals.machine.available,
                headroom: signals.groups.iter().map(Group::headroom).min(),
                changed_s: Some(since.as_secs()),
                shrinks: report.shrinks + u64::from(held > decision.limit),
                unreadable: None,
            }
        });
        decision
    }

    fn change(&self, change: impl FnOnce(&mut SizeReport)) {
        change(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use eke_testkit::tree;

    use super::*;
    use eke_cache_policy::size::LimitReason;

    struct Fake {
        held: Cell<u64>,
        limit: Cell<u64>,
    }

    impl Resize for Fake {
        fn held(&self) -> Bytes {
            Bytes(self.held.get())
        }

        fn resize(&self, limit: Bytes) {
            self.limit.set(limit.0);
            self.held.set(self.held.get().min(limit.0));
        }
    }

    fn write(root: &std::path::Path, available_mib: u64) {
        let meminfo =
            format!("MemTotal: {} kB\nMemFree: 0 kB\nMemAvailable: {} kB\n", 1024 << 10, available_mib << 10);
        tree::put(root, "proc/meminfo", &meminfo);
        tree::put(root, "proc/vmstat", "pswpin 0\n");
    }

    #[test]
    fn it_gives_memory_back_and_reports_what_it_cannot_read() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), 900);
        let governor = Governor::new(Memory::Percent(50));
        assert_eq!(governor.first(&Root::at(dir.path())).unwrap(), Bytes::mib(512));
        let store = Fake { held: Cell::new(512 << 20), limit: Cell::new(0) };
        let (samples, pauses) = (Cell::new(0u64), std::cell::RefCell::new(Vec::new()));
        governor.run(
            &Root::at(dir.path()),
            &store,
            Traffic::default,
            || Duration::from_secs(samples.get()),
            |pause| {
                pauses.borrow_mut().push(pause);
                samples.set(samples.get() + 1);
                match samples.get() {
                    1 => assert_eq!(governor.report().why, LimitReason::Asked),
                    2 => write(dir.path(), 14),
                    3 => {
                        // 50 MiB are missing from the reserve of 64.
                        assert!(store.held.get() <= (512 - 50) << 20, "{}", store.held.get());
                        assert_eq!(
                            (governor.report().why, governor.report().shrinks),
                            (LimitReason::Machine, 1)
                        );
                        std::fs::remove_file(dir.path().join("proc/meminfo")).unwrap();
                    }
                    _ => {}
                }
                samples.get() == 4
            },
        );
        assert_eq!(pauses.borrow()[1..3], [CALM_INTERVAL, BUSY_INTERVAL]);
        assert!(governor.report().unreadable.unwrap().contains("meminfo"));
        assert_eq!(store.limit.get(), governor.report().limit.0);
    }
}
