//! The loop: what is seen is taken in, and what follows is done.

use std::collections::BTreeMap;
use std::mem::{Discriminant, discriminant};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use eke_core::snapshot::PrefetchState;
use eke_core::units::Bytes;
use eke_kernel::{Root, state};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::ahead::{self, Going, Weighed};
use super::at_exec::AtExec;
use super::clock::{Clock, unix_s};
use super::disks::Disks;
use super::library::Library;
use super::memory::Looks;
use super::options::Options;
use super::pending::{self, Pending};
use super::running::Running;
use super::say::{Said, Say, name};
use crate::choose::{Limit, Occasion, Verdict};
use crate::fetch::{Fetcher, Haste, Limits};
use crate::happened::{Event, Happened};
use crate::keep::{Decision, DecisionId};
use crate::learn::{Exec, Finished, Now, Settings};
use crate::predict::eke::HORIZONS_S;
use crate::predict::{Eke, Predictor};
use crate::program::{Program, ProgramId};
use crate::trace::{News, Watch, process};

/// Nothing that is not told at once is later than this.
const PACE: Duration = Duration::from_millis(500);
/// While something is read it is looked after so often.
const READING_PACE: Duration = Duration::from_millis(20);
/// What waits is written, and the agent told, so often; the predictor's state is kept so often.
const FLUSH: Duration = Duration::from_secs(10);
const KEEP_STATE: Duration = Duration::from_secs(300);

const PREDICTOR: (&str, u32) = ("eke", 1);
const DISKS: (&str, u32) = ("disks", 1);

/// Why it does not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// poll(2) failed.
    #[error("cannot wait: {0}")]
    Wait(#[source] Errno),
    /// A program that was asked for is not known, or the store cannot be read.
    #[error("{0}")]
    Store(#[from] crate::keep::Error),
    /// Nothing is known of it.
    #[error("nothing is known of {0}: `eke prefetch list` shows what was learned, by its path")]
    Unknown(String),
    /// There is no descriptor or thread.
    #[error("cannot begin to read: {0}")]
    Begin(#[source] std::io::Error),
}

/// Runs until `shutdown` is readable.
///
/// # Errors
/// As [`Error::Wait`]; whatever else fails is said, and the rest goes on.
pub fn run(
    root: &Root,
    options: &Options,
    clock: &dyn Clock,
    shutdown: BorrowedFd<'_>,
    say: Say<'_>,
) -> Result<(), Error> {
    let mut process = Process::new(root, options, clock);
    process.find_running();
    say(process.ready());
    loop {
        process.turn();
        process.said.drain(..).for_each(&mut *say);
        if is_readable(shutdown)? {
            process.end();
            process.said.drain(..).for_each(&mut *say);
            return Ok(());
        }
    }
}

fn is_readable(fd: BorrowedFd<'_>) -> Result<bool, Error> {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    match poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(e) => Err(Error::Wait(e)),
    }
}

/// When something was done last, by CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, Default)]
struct Done {
    flush: Duration,
    state: Duration,
    choice: Duration,
}

struct Process<'a> {
    root: &'a Root,
    options: &'a Options,
    clock: &'a dyn Clock,
    watch: Watch,
    library: Library,
    predictor: Eke,
    running: Running,
    pending: Pending,
    looks: Looks,
    disks: Disks,
    fetcher: Fetcher,
    ahead: Option<Going>,
    at_exec: AtExec,
    /// What the next choice is for; none: nothing happened since the last.
    due: Option<Occasion>,
    /// What became of each program's files last.
    verdicts: BTreeMap<ProgramId, Discriminant<Verdict>>,
    done: Done,
    began: Duration,
    state: PrefetchState,
    told: PrefetchState,
    said: Vec<Said>,
}

impl<'a> Process<'a> {
    fn new(root: &'a Root, options: &'a Options, clock: &'a dyn Clock) -> Self {
        let now = clock.now();
        let mut library = Library::open(root, options, now);
        let predictor = library.state(PREDICTOR.0, PREDICTOR.1).map(|bytes| Eke::from_state(&bytes));
        let disks = Disks::new(root, library.state(DISKS.0, DISKS.1).as_deref());
        let fetcher = Fetcher::new(root.clone(), Limits::default());
        fetcher.know(disks.figures());
        let mut said = library.take_said();
        let predictor = predictor.unwrap_or_else(|| Ok(Eke::default())).unwrap_or_else(|e| {
            said.push(Said::Trouble { what: format!("what was learned of habits is begun anew: {e}") });
            Eke::default()
        });
        let watch = Watch::start(root, Settings::default());
        let state = PrefetchState {
            pid: std::process::id(),
            source: watch.source().to_string(),
            ..PrefetchState::default()
        };
        Self {
            root,
            options,
            clock,
            watch,
            library,
            predictor,
            running: Running::default(),
            pending: Pending::default(),
            looks: Looks::default(),
            disks,
            fetcher,
            ahead: None,
            at_exec: AtExec::default(),
            due: None,
            verdicts: BTreeMap::new(),
            done: Done::default(),
            began: now.mono,
            state,
            told: PrefetchState::default(),
            said,
        }
    }

    fn ready(&self) -> Said {
        Said::Ready {
            source: self.watch.source().to_string(),
            programs: self.library.len(),
            store: self.library.path().map(Into::into).unwrap_or_default(),
        }
    }

    /// What runs when this begins is no start, and its users' sessions are under way.
    fn find_running(&mut self) {
        let now_s = self.local_s(self.clock.now());
        for pid in eke_kernel::read::pids(self.root) {
            let Some((_, uid)) = process::parent_and_user(self.root, pid) else { continue };
            self.running.found_user(uid);
            let id = process::exe(self.root, pid).map(|exe| Program::of_exe(exe).id());
            let id = id.filter(|id| self.library.known(*id).is_some());
            self.running.executed(pid, uid, id);
            id.into_iter().for_each(|id| self.predictor.found_running(id, now_s));
        }
    }

    fn turn(&mut self) {
        let reads = self.ahead.is_some() || self.at_exec.is_busy();
        let (library, clock) = (&self.library, self.clock);
        let news = self.watch.turn(
            if reads { READING_PACE } else { PACE },
            &mut |program| library.known(program.id()).unwrap_or_default(),
            &|| clock.now(),
        );
        let now = self.clock.now();
        news.into_iter().for_each(|news| self.take(news, now));
        self.look_after_reading(now);
        self.measure(now);
        if self.is_choice_due(now) {
            self.choose(now);
        }
        self.keep_up(now);
        self.said.extend(self.library.take_said());
    }

    fn take(&mut self, news: News, now: Now) {
        match news {
            News::Exec(exec, learned) => self.executed(&exec, learned.is_some(), now),
            News::Exit { pid, .. } => {
                self.at_exec.ended(pid);
                let user = self.running.user(pid).unwrap_or_default();
                let events = self.running.ended(pid);
                events.into_iter().for_each(|event| self.happened(event, user, now));
            }
            News::Launch(finished) => self.learned(&finished, now),
            News::Trouble(what) => self.said.push(Said::Trouble { what }),
        }
    }

    fn executed(&mut self, exec: &Exec, is_learned: bool, now: Now) {
        let program = exec.program.as_ref().filter(|program| self.library.known(program.id()).is_some());
        let events = self.running.executed(exec.pid, exec.uid, program.map(Program::id));
        let starts = events.iter().any(|event| matches!(event, Event::Start(_)));
        events.into_iter().for_each(|event| self.happened(event, exec.uid, now));
        let Some(program) = program.filter(|_| starts) else { return };
        if !is_learned {
            self.library.seen(program, now);
        }
        // What is part of another program's launch is in that one's set.
        if exec.launch.is_none() {
            self.read_at_exec(program, exec.pid, now);
        }
    }

    fn happened(&mut self, event: Event, user: u32, now: Now) {
        let happened = Happened { at_s: self.local_s(now), user, event };
        self.predictor.observe(&happened);
        self.library.happened(happened);
        match event {
            Event::Session => self.due = Some(Occasion::Session),
            Event::Start(program) => {
                self.state.launches += 1;
                self.due = self.due.or(Some(Occasion::Ahead));
                self.used(program);
            }
            Event::Stop(_) => {}
        }
    }

    fn used(&mut self, program: ProgramId) {
        self.verdicts.remove(&program);
        let Some((bytes, decision)) = self.pending.started(program) else { return };
        self.state.foreseen += 1;
        self.state.used = self.state.used + Bytes(bytes);
        decision.into_iter().for_each(|decision| self.library.after(decision, pending::used(bytes)));
    }

    fn learned(&mut self, finished: &Finished, now: Now) {
        let launch = &finished.launch;
        let program = name(&launch.program);
        if !finished.is_worth {
            self.said.push(Said::NotKept { program });
            return;
        }
        let Some((files, bytes)) = self.library.learned(launch, now) else { return };
        self.state.learned += 1;
        let (took_s, cold_bytes) = (launch.took.as_secs_f64(), launch.cold_bytes);
        self.said.push(Said::Learned { program, took_s, files, bytes, cold_bytes });
    }

    fn read_at_exec(&mut self, program: &Program, pid: u32, now: Now) {
        let id = program.id();
        if !self.options.settings.at_exec || !self.at_exec.may_begin(id, now.mono) {
            return;
        }
        let Some(known) = self.library.program(id, now) else { return };
        let allowance = self.looks.allowance(self.root, &self.options.settings, Occasion::Exec, now);
        let weighed = Weighed::certain([known]);
        let choice = weighed.choose(&self.disks, allowance.budget);
        let wants = ahead::wants(&choice);
        if wants.is_empty() {
            self.decided(weighed.decisions(&choice, Occasion::Exec, allowance, unix_s(now)));
        } else if let Err(e) = self.at_exec.begin(&self.fetcher, (id, name(program), pid), wants, now.mono) {
            self.said.push(Said::Trouble { what: Error::Begin(e).to_string() });
        }
    }

    fn look_after_reading(&mut self, now: Now) {
        for (report, said) in self.at_exec.turn(&self.fetcher, now.mono) {
            self.state.at_exec = self.state.at_exec + Bytes(report.fetched_bytes);
            self.said.push(said);
        }
        if let Some(going) = self.ahead.take_if(|going| going.fetch.is_over()) {
            self.read_ahead(&going, now);
        }
    }

    fn read_ahead(&mut self, going: &Going, now: Now) {
        let report = going.fetch.report();
        self.state.ahead = self.state.ahead + Bytes(report.fetched_bytes);
        if report.failed > 0 {
            going.programs.iter().for_each(|(id, ..)| self.library.changed(*id));
        }
        self.said.push(ahead::said(going));
        // What was in memory already took no budget: there is more to choose.
        if going.was_short && report.fetched_bytes > 0 && report.there_bytes > report.fetched_bytes {
            self.due = self.due.or(Some(Occasion::Ahead));
        }
        self.done.choice = now.mono;
    }

    fn measure(&mut self, now: Now) {
        if self.ahead.is_some() || self.at_exec.is_busy() {
            return;
        }
        if let Some(said) = self.disks.turn(now.mono) {
            self.fetcher.know(self.disks.figures());
            self.library.put_state(DISKS.0, DISKS.1, &self.disks.to_state());
            self.said.push(said);
            self.due = self.due.or(Some(Occasion::Ahead));
        }
    }

    fn is_choice_due(&self, now: Now) -> bool {
        let since = now.mono.saturating_sub(self.done.choice);
        let is_due = self.due.is_some() && since >= self.options.between_choices || since >= ahead::AGAIN;
        // While a launch is read at exec, or learned, the disk is that one's.
        is_due && self.options.settings.ahead && !self.at_exec.is_busy()
    }

    /// What is under way goes on unless something else is wanted now.
    fn choose(&mut self, now: Now) {
        let occasion = self.due.take().unwrap_or(Occasion::Ahead);
        self.done.choice = now.mono;
        self.disks.refresh();
        let allowance = self.looks.allowance(self.root, &self.options.settings, occasion, now);
        self.state.off = allowance.limit.map(why_off);
        if allowance.budget.0 == 0 {
            self.ahead = None;
            return;
        }
        let chances = self.predictor.chances(self.local_s(now), HORIZONS_S[1]);
        let weighed = Weighed::of(&chances, &mut self.library, now);
        let choice = weighed.choose(&self.disks, allowance.budget);
        let programs = weighed.chosen(&choice);
        let decisions = weighed.decisions(&choice, occasion, allowance, unix_s(now));
        let numbers = self.decided(decisions);
        for (id, _, bytes) in &programs {
            self.pending.chosen(*id, *bytes, unix_s(now), numbers.get(id).copied());
        }
        let wants = ahead::wants(&choice);
        if wants.is_empty() {
            return;
        }
        match self.fetcher.start(wants, Haste::Ahead) {
            Ok(fetch) => self.ahead = Some(Going { fetch, programs, was_short: ahead::is_short(&choice) }),
            Err(e) => self.said.push(Said::Trouble { what: Error::Begin(e).to_string() }),
        }
    }

    /// Keeps what is new among decisions: each event brings a dozen, most of them as before.
    fn decided(&mut self, mut decisions: Vec<Decision>) -> BTreeMap<ProgramId, DecisionId> {
        decisions.retain(|new| {
            let kind = discriminant(&new.verdict);
            self.verdicts.insert(new.program, kind) != Some(kind)
        });
        let numbers = self.library.decided(&decisions);
        decisions.iter().map(|decision| decision.program).zip(numbers).collect()
    }

    fn keep_up(&mut self, now: Now) {
        if now.mono.saturating_sub(self.done.flush) >= FLUSH {
            self.done.flush = now.mono;
            self.flush(now);
        }
        if now.mono.saturating_sub(self.done.state) >= KEEP_STATE {
            self.done.state = now.mono;
            self.keep_predictor();
        }
    }

    fn flush(&mut self, now: Now) {
        for (bytes, decision) in self.pending.wasted(unix_s(now)) {
            decision.into_iter().for_each(|decision| self.library.after(decision, pending::wasted(bytes)));
        }
        self.library.flush(now);
        for forgotten in self.library.refresh(now) {
            self.predictor.forget(forgotten);
        }
        self.library.mend(self.root, self.options, now);
        self.state.programs = self.library.len() as u64;
        if self.options.tells_agent && self.state != self.told {
            self.told = self.state.clone();
            let up_s = now.mono.saturating_sub(self.began).as_secs();
            let state = PrefetchState { up_s, ..self.state.clone() };
            if let Err(e) = state::save(self.root, state::PREFETCH, &state) {
                self.said.push(Said::Trouble { what: e.to_string() });
            }
        }
    }

    fn keep_predictor(&mut self) {
        match self.predictor.to_state() {
            Ok(bytes) => self.library.put_state(PREDICTOR.0, PREDICTOR.1, &bytes),
            Err(e) => self.said.push(Said::Trouble { what: format!("habits cannot be kept: {e}") }),
        }
    }

    fn end(&mut self) {
        let now = self.clock.now();
        self.ahead = None;
        self.flush(now);
        self.keep_predictor();
        self.said.extend(self.library.take_said());
    }

    fn local_s(&self, now: Now) -> f64 {
        now.real_ns as f64 / 1e9 + self.clock.east_of_utc_s() as f64
    }
}

fn why_off(limit: Limit) -> String {
    match limit {
        Limit::Battery => "on battery (`on_battery` in [prefetch])".to_owned(),
        Limit::Refaults { per_s, .. } => {
            format!("memory is short: {per_s:.0} pages a second are read again that were dropped")
        }
        Limit::Memory { available, reserve } => {
            format!("{available} of memory is available, and {reserve} of that is left alone")
        }
    }
}
