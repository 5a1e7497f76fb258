//! The loop: takes events, reads, and does regular tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use eke_apply::lock::{self, Lock, LockError};
use eke_apply::state;
use eke_linux::Root;
use eke_model::snapshot::PrefetchState;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::clock::Clock;
use super::effect::Effect;
use super::error::Error;
use super::heap;
use super::last_starts::LastStarts;
use super::library::Library;
use super::log_ins::{self, AuditSessions, LogIns};
use super::notice::{Notice, Notify};
use super::options::Options;
use super::pending::{self, Pending};
use super::people::People;
use super::reads::{ReadingCpu, Reads};
use super::removed::Removed;
use super::running::{Executed, Running};
use crate::choose::{Disks, MemorySampler};
use crate::owners::owners;
use crate::probe::Probe;
use crate::probe::prober::Prober;
use crate::schedule::Scheduler;
use crate::trace::memory_files::MemoryFiles;
use crate::trace::mounts::Mounts;
use crate::trace::{Watch, process, script_path};
use eke_prefetch_model::learn::{Now, Owners, Settings, Wrappers};
use eke_prefetch_model::predict::Eke;
use eke_prefetch_model::predict::eke::StateError;
use eke_prefetch_model::program::ProgramId;
use eke_prefetch_model::user_event::Event;

/// The longest wait for events that do not wake the process.
const PACE: Duration = Duration::from_secs(1);
/// The longest wait while a fetch is running.
const READING_PACE: Duration = Duration::from_millis(20);
/// The intervals for writing pending rows and publishing the state, and for storing the predictor's state.
const FLUSH: Duration = Duration::from_secs(10);
const STORE_STATE: Duration = Duration::from_secs(300);

const PREDICTOR: (&str, u32) = ("eke", 2);
/// Version 1 knew disks by the kernel's names, which change.
pub(super) const DISKS: (&str, u32) = ("disks", 2);
/// Version 1 divided by the pages read from the disk alone.
pub(super) const CPU: (&str, u32) = ("cpu", 2);

/// A shorter suspension is none of which people come back.
const SUSPENDED: Duration = Duration::from_secs(60);

/// The lock file's name in the store's directory.
const LOCK: &str = "prefetch.lock";

/// Runs until `shutdown` is readable.
///
/// # Errors
/// [`Error::Wait`] or [`Error::AlreadyRuns`]. Other failures become notices, and the process continues.
pub fn run(
    root: &Root,
    options: &Options,
    clock: &dyn Clock,
    shutdown: BorrowedFd<'_>,
    notify: Notify<'_>,
) -> Result<(), Error> {
    heap::keep_small();
    let mut notice = None;
    let lock = lock(root, options, &mut notice)?;
    notice.into_iter().for_each(&mut *notify);
    let seed = clock.now().real_ns as u64;
    let mut watch = Watch::start(root, Settings { owners: owners(root), seed, ..Settings::default() });
    let mut process = Process::new(root, options, clock, watch.source().to_string(), watch.sees_uses());
    process.lock = lock;
    process.scheduler = process.scheduler.beside(watch.others_reads());
    process.find_running();
    notify(process.ready());
    loop {
        process.tick(&mut watch);
        process.notices.drain(..).for_each(&mut *notify);
        if is_readable(shutdown)? {
            process.end();
            process.notices.drain(..).for_each(&mut *notify);
            return Ok(());
        }
    }
}

/// One process per store. If the lock cannot be created, the store cannot be written either, and the fallback is used.
fn lock(root: &Root, options: &Options, notice: &mut Option<Notice>) -> Result<Option<Lock>, Error> {
    match lock::take(root, &options.store.join(LOCK), 0o700, std::process::id()) {
        Ok(lock) => Ok(Some(lock)),
        Err(LockError::Held { pid }) => Err(Error::AlreadyRuns { pid, store: options.store.clone() }),
        Err(e) => {
            *notice = Some(Notice::Trouble { what: e.to_string() });
            Ok(None)
        }
    }
}

fn load_predictor(library: &mut Library, people: &People, notices: &mut Vec<Notice>) -> Eke {
    let stored = library.state(PREDICTOR.0, PREDICTOR.1).map(|bytes| Eke::from_state(&bytes));
    let mut predictor = stored.unwrap_or_else(|| Ok(Eke::default())).unwrap_or_else(|e| {
        let what = format!("cannot read the predictor's state, and learning of habits begins anew: {e}");
        notices.push(Notice::Trouble { what });
        Eke::default()
    });
    predictor.keep_users(|user| people.has(user));
    predictor
}

fn is_readable(fd: BorrowedFd<'_>) -> Result<bool, Error> {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    match poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(e) => Err(Error::Wait(e)),
    }
}

/// The last time of each regular task, by CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LastDone {
    flush: Duration,
    state: Duration,
    pub(super) choice: Duration,
    /// The running processes with `/proc`, after a loss.
    compared: Duration,
    /// The suspensions so far, which were noticed.
    suspended: Duration,
}

pub(super) struct Process<'a> {
    pub(super) root: &'a Root,
    pub(super) options: &'a Options,
    pub(super) clock: &'a dyn Clock,
    /// On the store's directory; none while that cannot be written.
    lock: Option<Lock>,
    pub(super) library: Library,
    pub(super) predictor: Eke,
    pub(super) wrappers: Wrappers,
    pub(super) running: Running,
    pub(super) log_ins: LogIns,
    pub(super) sessions: AuditSessions,
    pub(super) last_starts: LastStarts,
    pub(super) owners: Owners,
    /// Whether events were lost since the running processes were compared with `/proc`.
    pub(super) lost: bool,
    pub(super) pending: Pending,
    pub(super) memory: MemorySampler,
    pub(super) effect: Effect,
    pub(super) disks: Disks,
    pub(super) cpu: ReadingCpu,
    pub(super) scheduler: Scheduler,
    pub(super) probe: Probe,
    /// Earlier versions of programs that were forgotten. One that comes back is in use beside the other.
    pub(super) superseded: BTreeSet<ProgramId>,
    pub(super) removed: Removed,
    pub(super) reads: Reads,
    pub(super) done: LastDone,
    pub(super) began: Duration,
    pub(super) state: PrefetchState,
    pub(super) published: PrefetchState,
    pub(super) notices: Vec<Notice>,
}

impl<'a> Process<'a> {
    fn new(
        root: &'a Root,
        options: &'a Options,
        clock: &'a dyn Clock,
        source: String,
        sees_uses: bool,
    ) -> Self {
        let (now, owners) = (clock.now(), owners(root));
        let mut library = Library::open(root, options, now);
        let wrappers = Self::load_wrappers(&mut library, now);
        let disks = Disks::new(root, library.state(DISKS.0, DISKS.1).as_deref());
        let effect = Effect::load(&mut library, options.control_percent(), sees_uses, now.real_ns as u64);
        // Without it the next fetches measure it again.
        let threads = library.json_state(CPU).unwrap_or_default();
        let scheduler = Scheduler::of_machine(root);
        scheduler.set_profiles(disks.profiles());
        let probe = Probe::new(Prober::new(root.clone(), Arc::clone(scheduler.stuck())));
        let mut notices = library.take_notices();
        let people = People::new(owners.clone());
        let predictor = load_predictor(&mut library, &people, &mut notices);
        let (pid, so_far) = (std::process::id(), effect.so_far());
        let state = PrefetchState { pid, source, effect: so_far, ..PrefetchState::default() };
        Self {
            root,
            options,
            clock,
            lock: None,
            library,
            predictor,
            wrappers,
            running: Running::new(people),
            log_ins: LogIns::default(),
            sessions: AuditSessions::default(),
            last_starts: LastStarts::default(),
            owners,
            lost: false,
            pending: Pending::default(),
            memory: MemorySampler::default(),
            effect,
            disks,
            cpu: ReadingCpu { threads, ..ReadingCpu::default() },
            scheduler,
            probe,
            superseded: BTreeSet::new(),
            removed: Removed::default(),
            reads: Reads::default(),
            done: LastDone { suspended: clock.suspended(), ..LastDone::default() },
            began: now.mono,
            state,
            published: PrefetchState::default(),
            notices,
        }
    }

    fn ready(&self) -> Notice {
        Notice::Ready {
            source: self.state.source.clone(),
            programs: self.library.len(),
            store: self.library.path().map(Into::into).unwrap_or_default(),
        }
    }

    /// Programs that run already do not count as started. A person's session has just begun if all processes are young.
    fn find_running(&mut self) {
        let (now, mounts, files) = (self.clock.now(), Mounts::read(self.root), MemoryFiles::new(self.root));
        let (now_s, mut is_young) = (self.local_s(now), BTreeMap::new());
        for pid in eke_linux::read::pids(self.root) {
            let Some((_, uid)) = process::parent_and_user(self.root, pid) else { continue };
            let session = process::session(self.root, pid);
            session.into_iter().for_each(|session| _ = self.sessions.is_new(uid, session));
            *is_young.entry(uid).or_insert(self.running.is_person(uid)) &=
                process::is_younger(self.root, pid, log_ins::LASTS) == Some(true);
            let id =
                process::exe(self.root, pid).map(|exe| script_path::program(&files, &mounts, pid, exe).id());
            let known = id.filter(|id| self.library.state_of(*id).is_some() && !self.is_wrapper(*id, uid));
            let is_event = known.is_some();
            self.running.found(Executed { pid, uid, program: id, is_event, log_in: None });
            let account = self.running.account(uid);
            known.into_iter().for_each(|id| self.predictor.found_running(id, account, now_s));
        }
        let begun = is_young.into_iter().filter(|(_, is_young)| *is_young);
        begun.for_each(|(uid, _)| self.on_event(Event::Session, uid, None, now));
    }

    fn tick(&mut self, watch: &mut Watch) {
        let reads = self.reads.ahead.is_some() || self.reads.launches.is_busy();
        let (pace, clock) = (if reads { READING_PACE } else { PACE }, self.clock);
        watch.poll(pace, &|| clock.now(), self);
        let now = self.clock.now();
        self.take_reports(now);
        self.measure(now);
        if self.is_choice_due(now) {
            self.prefetch_ahead(now);
        }
        self.do_regular_tasks(now);
        self.end_gone_if_lost(now);
        self.notices.extend(self.library.take_notices());
    }

    /// Ends the processes whose end was lost: a program that runs for ever is never read, learned or predicted again.
    fn end_gone_if_lost(&mut self, now: Now) {
        if !self.lost || now.mono.saturating_sub(self.done.compared) < PACE {
            return;
        }
        (self.lost, self.done.compared) = (false, now.mono);
        let existing = eke_linux::read::pids(self.root).into_iter().collect();
        for pid in self.running.without(&existing) {
            self.exited(pid, now);
        }
    }

    fn do_regular_tasks(&mut self, now: Now) {
        self.note_resumption(now);
        if now.mono.saturating_sub(self.done.flush) >= FLUSH {
            self.done.flush = now.mono;
            self.flush(now);
            self.disks.note_use(now.mono);
            self.forget_removed(now);
            heap::trim();
        }
        if now.mono.saturating_sub(self.done.state) >= STORE_STATE {
            self.done.state = now.mono;
            self.store_predictor();
            self.store_wrappers();
        }
    }

    /// After hibernation hardly any file is in memory, and people go on as after a log-in. After a suspension to memory all files are there, as probes show.
    fn note_resumption(&mut self, now: Now) {
        let suspended = self.clock.suspended();
        if suspended.saturating_sub(self.done.suspended) >= SUSPENDED {
            self.reads.due.session(now.mono);
        }
        self.done.suspended = suspended;
    }

    fn flush(&mut self, now: Now) {
        for (bytes, decision) in self.pending.wasted(now.mono) {
            decision
                .into_iter()
                .for_each(|decision| self.library.add_usage(decision, pending::wasted(bytes)));
        }
        self.return_to_store(now);
        // First, so that nothing of a program that is forgotten by now is written.
        self.library.refresh(now).into_iter().for_each(|forgotten| self.forget(forgotten));
        self.library.flush(now);
        self.library.reopen_damaged(self.root, self.options, now);
        self.state.programs = self.library.len() as u64;
        if self.options.publishes_state && self.state != self.published {
            self.published = self.state.clone();
            let up_s = now.mono.saturating_sub(self.began).as_secs();
            let state = PrefetchState { up_s, ..self.state.clone() };
            if let Err(e) = state::save(self.root, state::PREFETCH, &state) {
                self.notices.push(Notice::Trouble { what: e.to_string() });
            }
        }
    }

    /// Goes back to a store that could not be written, unless another process learns into it by now.
    fn return_to_store(&mut self, now: Now) {
        if !self.library.is_return_due(now) {
            return;
        }
        if self.lock.is_none() {
            self.lock = lock(self.root, self.options, &mut None).unwrap_or_default();
        }
        if self.lock.is_some() {
            self.library.return_to_store(now);
        }
    }

    fn store_predictor(&mut self) {
        match self.predictor_state() {
            Ok(bytes) => self.library.put_state(PREDICTOR.0, PREDICTOR.1, &bytes),
            Err(e) => self
                .notices
                .push(Notice::Trouble { what: format!("cannot store the predictor's state: {e}") }),
        }
    }

    /// Its state, as small as the store needs it: what was used last stays.
    fn predictor_state(&mut self) -> Result<Vec<u8>, StateError> {
        loop {
            let bytes = self.predictor.to_state()?;
            if self.library.has_room(PREDICTOR.0, bytes.len()) || !self.predictor.forget_longest_unused() {
                return Ok(bytes);
            }
        }
    }

    fn end(&mut self) {
        let now = self.clock.now();
        self.end_ahead(now);
        self.library.write_soon();
        self.flush(now);
        self.store_predictor();
        self.store_wrappers();
        if self.options.publishes_state {
            let forgotten = state::forget(self.root, state::PREFETCH);
            self.notices.extend(forgotten.err().map(|e| Notice::Trouble { what: e.to_string() }));
        }
        self.notices.extend(self.library.take_notices());
    }

    pub(super) fn local_s(&self, now: Now) -> f64 {
        now.real_ns as f64 / 1e9 + self.clock.east_of_utc_s() as f64
    }
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
