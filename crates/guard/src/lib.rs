//! The guard: keeps a machine usable when its memory ends. It is a part of the agent, and acts while a plan is applied.
//!
//! # Layout
//! - [`shortage`]: how short of memory the machine is, from samples; pure
//! - [`level`]: how bad that is; [`own_limit`]: whether it is only a group at its own limit; pure
//! - [`escalate`]: slow, stop for a moment, ask to end, end; pure
//! - [`process`], [`growth`], [`unit`], [`protect`], [`target`]: which processes belong together, which are never touched, and which are to
//!   blame; [`grower`]: that what is never ended is; [`terminal`]: who notices a stop; pure
//! - [`others`]: other programs that do the same; pure; `balloon`: the host gives memory back
//! - `message`: what the log, the clients and the desktop get to read; pure
//! - [`read`]: reads the processes; `trust`: whose word their names are; `group`: where their control groups are;
//!   [`act`]: performs the steps
//!
//! Invariants: every stop and every limit is in the journal before it happens, and ends within seconds. Nothing that is
//! protected is ever signalled. While the machine is calm, the guard reads the sizes of processes once a minute, and
//! when programs have grown.
//!
//! # Design
//! *When.* The kernel's pressure-stall information tells how much of the time no task could run (`full`). That is what a person
//! calls a freeze, on any disk and any compressed swap. How much programs can still get is computed from available memory, and
//! from free compressed swap at its present ratio: the free size of a zram device alone says nothing, because it is virtual.
//!
//! *Whom.* Growth within ten seconds, a minute and ten minutes, not size: a large program that stays as it is did not take the
//! memory. Groups of services, apps and containers are ended as a whole, jobs of a shell as a job, and of a browser the one that
//! grows of the processes that it declares dispensable.
//!
//! *How.* First what can be undone. A short stop lets the kernel move the cause's pages to compressed swap while nothing else
//! waits for them. Only exhausted memory, or a hard stall or nearly exhausted memory after stops in vain, ends a program.

pub mod act;
mod balloon;
pub mod escalate;
mod group;
pub mod grower;
pub mod growth;
pub mod level;
mod message;
pub mod others;
pub mod own_limit;
pub mod process;
pub mod protect;
pub mod read;
pub mod shortage;
pub mod target;
pub mod terminal;
mod trust;
pub mod unit;

use std::collections::BTreeSet;

use eke_linux::cgroup::limit;
use eke_linux::parse::lru_gen;
use eke_linux::{Error, Root, read as machine};
use eke_model::config::{Enabled, GuardSettings};
use eke_model::guard::{self, Off, Others, Part};
use eke_model::sample::Sample;
use eke_model::snapshot::{GuardState, Message};
use eke_model::units::Bytes;

use act::InForce;
use escalate::{Action, State};
use grower::{Choice, Grower, Restraint, What};
use growth::History;
use level::{Level, level};
use own_limit::OwnLimit;
use process::Process;
use shortage::{Recent, Shortage};
use target::Target;

/// Time between two polls while memory is short.
pub const POLL_MS: u64 = 250;
/// It polls for this long after the last shortage.
const WATCH_MS: u64 = 10_000;
/// Time between two readings of all processes while the machine is calm, unless their memory grew by this share of RAM.
const CALM_READ_MS: u64 = 60_000;
const GREW_SHARE: f64 = 0.02;
/// How often a target is looked through for processes that it forked while it was ended.
const NEWBORN_READS: usize = 4;

/// The guard's state from poll to poll.
#[derive(Debug, Default)]
pub struct Guard {
    recent: Recent,
    history: History,
    reader: read::Reader,
    state: State,
    own_limit: OwnLimit,
    restraint: Restraint,
    in_force: InForce,
    shown: GuardState,
    level: Level,
    watch_until_ms: u64,
    /// The time to the next poll on a kernel without PSI, which wakes nobody.
    unwoken_ms: Option<u64>,
    read_ms: Option<u64>,
    /// The memory of all programs when they were last read.
    read_demand: Bytes,
    began: bool,
}

/// One poll.
#[derive(Debug)]
pub struct Poll<'a> {
    /// The machine.
    pub root: &'a Root,
    /// The user's settings.
    pub settings: &'a GuardSettings,
    /// The sample of now.
    pub now: Sample,
}

impl Guard {
    /// Memory pressure: polls often from now on.
    pub fn wake(&mut self, now_ms: u64) {
        self.watch_until_ms = now_ms + WATCH_MS;
    }

    /// When to poll again; `None` while the agent's own tick suffices.
    pub fn next_poll_ms(&self, now_ms: u64) -> Option<u64> {
        let busy = now_ms < self.watch_until_ms || self.state.is_acting() || !self.in_force.is_empty();
        let pause_ms = if busy { Some(POLL_MS) } else { self.unwoken_ms };
        pause_ms.filter(|_| self.shown.off.is_none()).map(|ms| now_ms + ms)
    }

    /// How short memory was at the last poll.
    pub fn level(&self) -> Level {
        self.level
    }

    /// What clients see.
    pub fn shown(&self) -> &GuardState {
        &self.shown
    }

    /// Samples, decides and acts; returns messages for the log and the events.
    pub fn poll(&mut self, poll: Poll<'_>) -> Vec<Message> {
        let now_ms = poll.now.time_ms;
        let mut messages = self.begin(poll.root);
        self.recent.push(poll.now.clone());
        let shortage = self.shortage(&poll);
        self.level = level(&shortage);
        self.shown.without_psi = poll.now.pressure.is_none();
        self.unwoken_ms = self.shown.without_psi.then(|| shortage.poll_again_ms().max(POLL_MS));
        if self.level > Level::Calm {
            self.wake(now_ms);
        }
        let processes = self.read(&poll);
        if self.shown.off.is_some() {
            messages.extend(self.let_go(poll.root));
            return messages;
        }
        let chooses = self.level >= Level::Short && !self.state.is_ending(now_ms);
        let choice = chooses.then(|| self.choice(&processes, &poll)).flatten();
        let grower = choice.as_ref().and_then(|choice| choice.grower);
        let spares = choice.as_ref().is_some_and(|choice| self.restraint.spares(choice, self.level, now_ms));
        messages
            .extend(grower.filter(|_| spares).and_then(|grower| self.spared(&grower, &processes, now_ms)));
        let target = choice.map(|choice| choice.target).filter(|_| !spares);
        let asked = self.state.asked().is_some_and(|asked| runs(asked, &processes));
        let ended = self.shown.ended;
        for action in self.decide(&shortage, target.as_ref(), asked, now_ms) {
            messages.extend(self.perform(&poll, &processes, &action, &shortage));
        }
        if self.shown.ended > ended {
            self.restraint.note_end(grower.as_ref(), now_ms);
        }
        messages.extend(self.undo_what_is_over(poll.root));
        messages
    }

    /// The machine's shortage, without the stalls of a group at its own limit, unless the guard's step set that.
    fn shortage(&mut self, poll: &Poll<'_>) -> Shortage {
        let shortage = self.recent.shortage();
        let slowed = self.in_force.slowed_groups();
        let read = || limit::at_limit(poll.root, &slowed);
        if self.own_limit.explains(&shortage, poll.now.time_ms, read) {
            shortage.without_stalls()
        } else {
            shortage
        }
    }

    fn decide(
        &mut self,
        shortage: &Shortage,
        target: Option<&Target>,
        asked: bool,
        now_ms: u64,
    ) -> Vec<Action> {
        if self.shown.last_resort.is_some() {
            self.state.decide_last(shortage, target, asked, now_ms)
        } else {
            self.state.decide(shortage, target, asked, now_ms)
        }
    }

    /// Says why nothing is done, if what grows is never ended.
    fn spared(&mut self, grower: &Grower, processes: &[Process], now_ms: u64) -> Option<Message> {
        let says = self.level >= Level::Stalled && self.restraint.says(now_ms);
        says.then(|| message::spared(grower, processes))
    }

    /// Undoes what is over. What the kernel refuses is tried again at the next poll.
    fn undo_what_is_over(&mut self, root: &Root) -> Option<Message> {
        let goes_on = if self.state.stopped().is_none() { self.in_force.go_on(root) } else { Ok(()) };
        let full_speed = if self.state.is_slowed() { Ok(()) } else { self.in_force.release(root) };
        goes_on.and(full_speed).err().map(|e| message::failed("let everything continue", None, &e))
    }

    /// Lets everything continue, because the plan is no longer applied or the guard is off.
    pub fn let_go(&mut self, root: &Root) -> Option<Message> {
        self.state = State::default();
        self.undo_what_is_over(root)
    }

    /// The settings may have changed: whether it is on is decided anew at the next poll.
    pub fn reload(&mut self) {
        self.read_ms = None;
    }

    /// The first poll finds what a killed agent left, and undoes it at its end.
    fn begin(&mut self, root: &Root) -> Vec<Message> {
        if self.began {
            return Vec::new();
        }
        let left = InForce::left_over(root).map(|left| self.in_force = left);
        self.began = left.is_ok();
        left.err()
            .map(|e| format!("What an earlier guard left cannot be undone yet: {e}.").into())
            .into_iter()
            .collect()
    }

    /// All processes; empty while none are needed.
    fn read(&mut self, poll: &Poll<'_>) -> Vec<Process> {
        let (now_ms, demand) = (poll.now.time_ms, shortage::demand(&poll.now));
        let old = self.read_ms.is_none_or(|at| now_ms.saturating_sub(at) >= CALM_READ_MS);
        let grew = demand.saturating_sub(self.read_demand) >= shortage::ram(&poll.now).scaled(GREW_SHARE);
        if !old && !grew && self.level == Level::Calm && !self.state.is_acting() {
            return Vec::new();
        }
        let processes = self.reader.processes(poll.root, now_ms);
        self.history.push(now_ms, &processes, shortage::in_use(&poll.now));
        self.state.keep_in_vain(|id| processes.iter().any(|p| p.id == *id));
        self.read_demand = demand;
        if old {
            self.read_ms = Some(now_ms);
            (self.shown.off, self.shown.last_resort) = part(poll, &processes);
        }
        processes
    }

    fn choice(&self, processes: &[Process], poll: &Poll<'_>) -> Option<Choice> {
        let ram = shortage::ram(&poll.now);
        let kept = protect::protected(processes, &poll.settings.protect);
        let mut protected = kept.clone();
        protected.extend(self.state.in_vain().iter().map(|id| id.pid));
        let growth = self.history.growth(processes, shortage::in_use(&poll.now), poll.now.time_ms);
        let units = unit::units(processes, &protected, &growth, target::least(ram));
        let noticed = terminal::noticed(processes, &protected);
        let mapper = || target::mapper(&units, &growth, &noticed, ram);
        let Some(target) = target::choose(&units, &growth, &noticed, ram) else {
            return mapper().map(|target| Choice::mapper(target, &growth));
        };
        if target::is_anothers_fault(&target, &units, processes, &protected, &growth, ram) {
            return None;
        }
        let grower = grower::grower(&target, &units, processes, &kept, &growth, ram);
        let mapper = grower.filter(|grower| grower.what == What::Shared).and_then(|_| mapper());
        Some(
            mapper
                .map_or(Choice { target, grower, maps_it: false }, |target| Choice::mapper(target, &growth)),
        )
    }

    fn perform(
        &mut self,
        poll: &Poll<'_>,
        processes: &[Process],
        action: &Action,
        why: &Shortage,
    ) -> Option<Message> {
        let (root, now_ms) = (poll.root, poll.now.time_ms);
        match action {
            Action::Slow(target) => match self.in_force.slow(root, target) {
                Ok(true) => Some(message::done("Slowed", target, why)),
                Ok(false) => {
                    self.state.not_yet(action, now_ms);
                    None
                }
                Err(e) => self.refused(action, ("slow it", target), &e, now_ms),
            },
            Action::Stop(target) => match self.in_force.stop(root, target) {
                Ok(is_stopped) => is_stopped.then(|| {
                    self.shown.stops += 1;
                    message::done("Stopped for a moment", target, why)
                }),
                Err(e) => self.refused(action, ("stop it", target), &e, now_ms),
            },
            // The state says so; what follows from it is done at the end of each poll.
            Action::Continue | Action::Release => None,
            Action::Ask(target) => self.end(root, target, false, why),
            Action::End(target) => {
                let said = self.end(root, target, true, why);
                let newborn = self.end_newborn(poll, processes, target);
                message::with_newborn(said, target, newborn)
            }
        }
    }

    /// A fork bomb forks while it is ended: what it left is found and ended at once, not at the next poll. Returns how many there were.
    fn end_newborn(&mut self, poll: &Poll<'_>, processes: &[Process], target: &Target) -> usize {
        let mut ended = BTreeSet::new();
        let reads = if target::may_fork(target) { NEWBORN_READS } else { 0 };
        for _ in 0..reads {
            let now = self.reader.processes(poll.root, poll.now.time_ms);
            let protected = protect::protected(&now, &poll.settings.protect);
            let newborn = target::newborn(target, processes, &now, &protected);
            // A refusal was said for the target itself.
            if newborn.is_empty() || act::kill(poll.root, &newborn).is_err() {
                break;
            }
            ended.extend(newborn);
        }
        ended.len()
    }

    /// Another eke that has the journal delays a step; the kernel's refusal of a stop calls for the next one.
    fn refused(
        &mut self,
        action: &Action,
        (what, target): (&str, &Target),
        e: &Error,
        now_ms: u64,
    ) -> Option<Message> {
        if e.is_locked() {
            self.state.not_yet(action, now_ms);
            return None;
        }
        if matches!(action, Action::Stop(_)) {
            self.state.stop_failed(now_ms);
        }
        Some(message::failed(what, Some(target), e))
    }

    fn end(&mut self, root: &Root, target: &Target, now: bool, why: &Shortage) -> Option<Message> {
        // SIGTERM reaches a stopped process only when it continues; SIGKILL reaches every one.
        let undone = if now { Ok(()) } else { self.in_force.go_on(root) };
        let first = target.processes.first().map(|p| p.pid);
        let is_first = self.shown.ended_pid != first;
        if let Err(e) = undone.and_then(|()| act::end(root, target, now, is_first)) {
            return Some(message::failed("end it", Some(target), &e));
        }
        if !is_first {
            // It was asked before, or needs its time to end.
            return None;
        }
        self.history.note_end(&target.processes);
        self.shown.ended += 1;
        self.shown.ended_pid = first;
        Some(message::ended(target, why))
    }
}

/// Whether any process of the target still has memory. A killed one that closes its files may wait for a server or a disk for ever, without any.
fn runs(target: &Target, processes: &[Process]) -> bool {
    let has_memory = |id| processes.iter().any(|p| p.id == id && p.size > Bytes(0));
    target.processes.iter().copied().any(has_memory)
}

/// Why the guard does nothing, and why it is only the last resort; `None` if it is not so.
fn part(poll: &Poll<'_>, processes: &[Process]) -> (Option<String>, Option<String>) {
    let text = |file: &str| poll.root.read(format!("sys/kernel/mm/lru_gen/{file}")).unwrap_or_default();
    let others = Others {
        daemon: others::running(processes),
        lru_gen: lru_gen::is_on(&text("enabled")),
        min_ttl_ms: text("min_ttl_ms").trim().parse().ok(),
    };
    let compressed = machine::swap_in_use(poll.root, &poll.now) != "none";
    let both = "(guard.enabled = \"on\" runs both)";
    match guard::part(poll.settings.enabled, &others, compressed) {
        Part::All => (None, balloon(poll)),
        Part::LastResort(name) => (
            None,
            Some(format!(
                "{name} runs and acts first, but takes free compressed swap for free memory; a program is ended only when memory has been exhausted for two seconds {both}"
            )),
        ),
        Part::Nothing(off) => (Some(reason(off, both)), None),
    }
}

/// Why a balloon makes it only the last resort.
fn balloon(poll: &Poll<'_>) -> Option<String> {
    let counts = poll.settings.enabled != Enabled::On && balloon::deflates_on_oom(poll.root);
    counts.then(|| {
        "the balloon of this virtual machine gives memory back when it is exhausted; a program is ended only when that has lasted for two seconds (guard.enabled = \"on\" does not wait)".to_owned()
    })
}

fn reason(off: Off<'_>, both: &str) -> String {
    match off {
        Off::BySettings => "it is switched off in the settings".to_owned(),
        Off::Daemon(name) => format!("{name} runs, which does the same {both}"),
        Off::MinTtl { ms } => format!("lru_gen/min_ttl_ms is {ms}, so the kernel does the same {both}"),
    }
}
