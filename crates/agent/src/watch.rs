//! One tick: sample, model, live decisions, snapshot.

use std::collections::BTreeMap;

use eke_apply::state;
use eke_guard::level::Level;
use eke_guard::shortage::without_leaving;
use eke_guard::{Guard, POLL_MS, Poll};
use eke_linux::Root;
use eke_linux::cgroup::limit;
use eke_linux::read::swap_in_use;
use eke_linux::sampler::Sampler;
use eke_model::applied::Bounds;
use eke_model::config::{Enabled, Settings};
use eke_model::model::Model;
use eke_model::sample::Sample;
use eke_model::snapshot::{
    AgentState, Event, IoState, Machine, Message, PrefetchState, Response, Snapshot, waits_with_plenty,
};
use eke_model::units::Bytes;
use eke_swap::live::facts::MachineLoad;
use eke_swap::live::relief::is_short;
use eke_swap::live::{Live, Tick};
use eke_swap::remedy::undo_left_over;
use rustix::time::{ClockId, clock_gettime};

use crate::adopt::{Adopted, adopt};
use crate::check::Check;
use crate::child_service::ChildServices;
use crate::clock::Clock;
use crate::events::Events;

/// An answer to `status` is reused for this long.
const FRESH_MS: u64 = 500;

/// The machine as the agent sees it.
pub struct Watch<'a> {
    root: &'a Root,
    clock: &'a dyn Clock,
    settings: Settings,
    sampler: Sampler,
    started_ms: u64,
    /// The sample of the tick before the last: the start of the last tick's rates.
    before: Option<Sample>,
    /// The sample of the last tick: the start of a status' rates.
    last: Option<Sample>,
    backend: String,
    model: Model,
    machine: Machine,
    group_at_limit: Option<String>,
    sampled_unix_s: u64,
    model_ms: Option<u64>,
    adopted: Adopted,
    events: Events,
    check: Check,
    live: Live,
    guard: Guard,
    children: ChildServices,
    /// The answer to `Status` by reader: nobody, root, and each user who may know the name of a kept program.
    rendered: BTreeMap<u32, Vec<u8>>,
}

impl<'a> Watch<'a> {
    /// Adopts what is applied and takes the first sample. `children` run while a plan is applied.
    pub fn new(
        root: &'a Root,
        clock: &'a dyn Clock,
        settings: Settings,
        children: impl Into<ChildServices>,
    ) -> Self {
        let mut watch = Self {
            root,
            clock,
            settings,
            sampler: Sampler::new(root),
            started_ms: clock.monotonic_ms(),
            before: None,
            last: None,
            backend: String::new(),
            model: Model::default(),
            machine: Machine::default(),
            group_at_limit: None,
            sampled_unix_s: 0,
            model_ms: None,
            adopted: Adopted::default(),
            events: Events::default(),
            check: Check::default(),
            live: Live::default(),
            guard: Guard::default(),
            children: children.into(),
            rendered: BTreeMap::new(),
        };
        watch.adopt();
        watch.undo_left_over();
        watch
    }

    /// A killed training leaves its scratch device.
    fn undo_left_over(&mut self) {
        if let Err(e) = undo_left_over(self.root) {
            self.note(format!("What a measurement left could not be undone: {e}."));
        }
    }

    /// Time between two ticks in milliseconds.
    pub fn tick_ms(&self) -> u64 {
        u64::from(self.settings.agent.tick_s) * 1_000
    }

    /// Reloads after `eke up` changed the plan, or the user the settings.
    pub fn reload(&mut self, settings: Settings) {
        self.settings = settings;
        self.live.renew();
        self.guard.reload();
        self.adopt();
    }

    fn adopt(&mut self) {
        self.adopted = adopt(self.root);
        self.note(self.adopted.message());
    }

    /// Keeps a message for the log and for `status`.
    pub fn note(&mut self, message: impl Into<Message>) {
        self.events.push(self.clock.unix_s(), message);
        self.rendered.clear();
    }

    /// The important events since the last call.
    pub fn news(&mut self) -> Vec<Event> {
        self.events.take_news()
    }

    /// The kept important events as lines, for a client of this user that begins to watch.
    pub fn important(&self, uid: u32) -> Vec<Vec<u8>> {
        self.events.important().map(|event| event_line(event, uid)).collect()
    }

    /// Samples, decides and acts.
    pub fn tick(&mut self) {
        if let Some(sample) = self.sample() {
            self.before = self.last.replace(sample);
            self.show(self.last.clone().unwrap_or_default(), self.before.clone());
            self.compare();
            self.maintain();
            self.guard();
        }
        self.supervise_children();
    }

    /// Memory pressure: the guard polls often from now on.
    pub fn wake_guard(&mut self) {
        self.guard.wake(self.clock.monotonic_ms());
    }

    /// When the guard needs a poll before the next tick. While a device is swapped off it polls often, even if it is off: memory may become short by that.
    pub fn next_guard_ms(&self) -> Option<u64> {
        let now_ms = self.clock.monotonic_ms();
        let while_draining = self.live.draining().map(|_| now_ms + POLL_MS);
        let of_guard = self.guards().then(|| self.guard.next_poll_ms(now_ms)).flatten();
        while_draining.into_iter().chain(of_guard).min()
    }

    /// Whether the guard runs: swap is eke's, or the user wants the guard in any case.
    fn guards(&self) -> bool {
        let is_forced = self.settings.guard.enabled == Enabled::On;
        self.adopted.applied.as_ref().is_some_and(|applied| is_forced || !applied.plans.is_empty())
    }

    /// What the guard stopped or slowed continues: at the agent's end, and without a plan.
    pub fn let_go(&mut self) {
        let message = self.guard.let_go(self.root);
        message.into_iter().for_each(|m| self.note(m));
    }

    /// Polls the guard, if it runs, and relieves memory that is short.
    pub fn guard(&mut self) {
        let guards = self.guards();
        if !guards {
            self.let_go();
        }
        if !guards && self.live.draining().is_none() {
            return;
        }
        // Not `brief`, which keeps files of zram devices open: if the agent hangs, `eke down` would take that for a call in progress.
        let Ok(now) = self.sampler.full(self.clock.monotonic_ms()) else { return };
        self.relieve(&now);
        if guards {
            self.poll(now);
        }
    }

    fn poll(&mut self, now: Sample) {
        let now = match self.live.draining() {
            Some(device) => without_leaving(now, device),
            None => now,
        };
        for message in self.guard.poll(Poll { root: self.root, settings: &self.settings.guard, now }) {
            self.note(message);
        }
        if self.guard.level() >= Level::Short {
            self.live.interrupt_drain();
        }
    }

    fn supervise_children(&mut self) {
        let now_ms = self.clock.monotonic_ms();
        let applied = self.adopted.applied.as_ref();
        let runs = |choice, measured: fn(&Bounds) -> bool| match choice {
            Enabled::Auto => applied.is_some_and(|a| measured(&a.bounds)),
            Enabled::On => applied.is_some(),
            Enabled::Off => false,
        };
        let prefetches = runs(self.settings.prefetch.enabled, |bounds| bounds.prefetch);
        let governs = runs(self.settings.io.govern, |bounds| bounds.governor)
            || applied.is_some_and(|a| a.bounds.govern_io);
        let prefetch = self.children.prefetch.supervise(prefetches, now_ms);
        let io = self.children.io.supervise(governs, now_ms);
        for sentence in prefetch.into_iter().chain(io) {
            self.note(sentence);
        }
        self.train();
    }

    /// Starts the training of a dictionary that is due, and notices its end.
    fn train(&mut self) {
        let start = self.live.takes_training().then(|| self.children.training.start());
        let failed = start.and_then(Result::err);
        let has_ended = self.children.training.has_ended();
        if failed.is_some() || has_ended {
            self.live.training_ended();
        }
        if has_ended {
            self.undo_left_over();
        }
        if let Some(message) = failed {
            self.note(message);
        }
    }

    /// The answer to `Status` of this user as one line, at most [`FRESH_MS`] old.
    pub fn status(&mut self, uid: u32) -> &[u8] {
        let age_ms = self.model_ms.map(|at| self.clock.monotonic_ms().saturating_sub(at));
        if age_ms.is_none_or(|age| age > FRESH_MS) {
            if let Some(sample) = self.sample() {
                self.show(sample, self.last.clone());
            }
        }
        let reader = self.events.reader(uid);
        let known = self.rendered.remove(&reader);
        let answer =
            known.unwrap_or_else(|| line(&Response::Status(Box::new(self.snapshot().for_reader(reader)))));
        self.rendered.entry(reader).or_insert(answer)
    }

    fn sample(&mut self) -> Option<Sample> {
        match self.sampler.full(self.clock.monotonic_ms()) {
            Ok(sample) => Some(sample),
            Err(e) => {
                self.note(Message::important(format!("The machine cannot be sampled: {e}.")));
                None
            }
        }
    }

    fn show(&mut self, now: Sample, before: Option<Sample>) {
        self.backend = swap_in_use(self.root, &now);
        self.model = Model::new(&now, before.as_ref());
        self.machine = Machine::from(&now);
        let at_limit =
            waits_with_plenty(&self.model, &self.machine).then(|| limit::waiting_at_limit(self.root));
        self.group_at_limit = at_limit.flatten();
        self.sampled_unix_s = self.clock.unix_s();
        self.model_ms = Some(now.time_ms);
        self.rendered.clear();
    }

    fn compare(&mut self) {
        let (Some(prediction), Some(sample)) = (self.adopted.prediction(), &self.last) else { return };
        let now_ms = self.clock.monotonic_ms();
        if let Some(sentence) = self.check.compare(prediction, &self.model, sample, now_ms) {
            self.note(sentence);
        }
    }

    /// Maintains only while a plan is applied.
    fn maintain(&mut self) {
        let (Some(_), Some(now), Some(before)) = (&self.adopted.applied, &self.last, &self.before) else {
            return;
        };
        let settings = self.adopted.bounded(&self.settings.swap);
        let moment = Tick {
            root: self.root,
            settings: &settings,
            now,
            before,
            model: &self.model,
            unix_s: self.clock.unix_s(),
        };
        for sentence in self.live.tick(&moment) {
            self.note(sentence);
        }
    }

    /// Between ticks: memory is short now, not ten seconds later.
    fn relieve(&mut self, now: &Sample) {
        let (Some(_), Some(before)) = (&self.adopted.applied, &self.last) else { return };
        let settings = self.adopted.bounded(&self.settings.swap);
        let (root, model, unix_s) = (self.root, &self.model, self.clock.unix_s());
        let moment = Tick { root, settings: &settings, now, before, model, unix_s };
        if is_short(&MachineLoad::new(now, before, model)) {
            self.children.training.stop();
        }
        for message in self.live.relieve(&moment) {
            self.note(message);
        }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            agent: Some(self.state()),
            agent_silent: None,
            applied: self.adopted.applied.as_ref().is_some_and(|applied| !applied.plans.is_empty()),
            backend: self.backend.clone(),
            prediction: self.adopted.prediction().cloned(),
            unix_s: self.sampled_unix_s,
            model: self.model.clone(),
            machine: self.machine,
            group_at_limit: self.group_at_limit.clone(),
            prefetch: self.children.prefetch.pid().and_then(|pid| prefetch_state(self.root, pid)),
            io: self.children.io.pid().and_then(|pid| io_state(self.root, pid)),
            guard: self.guards().then(|| self.guard.shown().clone()),
            events: self.events.as_slice().to_vec(),
            ended: self.events.ended().to_vec(),
        }
    }

    fn state(&self) -> AgentState {
        let statm = self.root.read("proc/self/statm").unwrap_or_default();
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        AgentState {
            pid: std::process::id(),
            up_s: self.clock.monotonic_ms().saturating_sub(self.started_ms) / 1_000,
            resident: resident(&statm, rustix::param::page_size()),
            cpu_ms: u64::try_from(cpu.tv_sec).unwrap_or(0) * 1_000
                + u64::try_from(cpu.tv_nsec).unwrap_or(0) / 1_000_000,
        }
    }
}

/// A message as one line with its line end.
pub fn line(response: &Response) -> Vec<u8> {
    // Serializing strings and numbers cannot fail.
    let mut line = serde_json::to_vec(response).unwrap_or_default();
    line.push(b'\n');
    line
}

/// An event as one line, with the name that this user may know.
pub fn event_line(event: &Event, uid: u32) -> Vec<u8> {
    line(&Response::Event(event.clone().for_reader(uid)))
}

/// The state that `eke-prefetch` published, if process `pid` wrote it.
fn prefetch_state(root: &Root, pid: u32) -> Option<PrefetchState> {
    state::load::<PrefetchState>(root, state::PREFETCH).filter(|state| state.pid == pid)
}

/// The state that `eke-io` published, if process `pid` wrote it.
fn io_state(root: &Root, pid: u32) -> Option<IoState> {
    state::load::<IoState>(root, state::IO).filter(|state| state.pid == pid)
}

/// The resident set: the second number of `/proc/PID/statm` (proc_pid_statm(5)), in pages.
fn resident(statm: &str, page_bytes: usize) -> Bytes {
    let pages: u64 = statm.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
    Bytes(pages.saturating_mul(page_bytes as u64))
}

#[cfg(test)]
mod tests;
