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
use eke_model::config::{Enabled, Settings};
use eke_model::model::Model;
use eke_model::sample::Sample;
use eke_model::snapshot::{
    AgentState, Bounds, Event, IoState, Machine, Message, PrefetchState, Response, Snapshot,
    waits_with_plenty,
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
mod tests {
    use std::cell::Cell;

    use eke_apply::session::Session;
    use eke_model::snapshot::{Applied, IoLatency};
    use eke_model::step::{Plan, Prediction, Reason};
    use eke_testkit::fake_kernel::FakeKernel;
    use eke_testkit::wait::wait_for;

    use super::*;
    use crate::child_service::ChildService;
    use crate::training::Training;

    #[derive(Default)]
    struct ManualClock(Cell<u64>);

    impl Clock for ManualClock {
        fn monotonic_ms(&self) -> u64 {
            self.0.get()
        }
        fn unix_s(&self) -> u64 {
            1_000_000 + self.0.get() / 1_000
        }
    }

    fn snapshot(watch: &mut Watch<'_>) -> Snapshot {
        match serde_json::from_slice(watch.status(1000)).unwrap() {
            Response::Status(snapshot) => *snapshot,
            other => panic!("{other:?}"),
        }
    }

    fn settings() -> Settings {
        Settings::from_sources(&[]).unwrap()
    }

    #[test]
    fn rates_of_a_status_are_about_the_time_since_the_last_tick() {
        let (machine, clock) = (FakeKernel::new(), ManualClock::default());
        let root = machine.root();
        let mut watch = Watch::new(&root, &clock, settings(), ChildService::none());
        watch.tick();
        machine.put("proc/vmstat", "pswpin 400\npswpout 0\n");
        clock.0.set(400);
        assert_eq!(snapshot(&mut watch).model.pages_in_per_s, 0.0, "too early for a rate");
        clock.0.set(4_000);
        let model = snapshot(&mut watch).model;
        assert_eq!((model.pages_in_per_s, model.interval_s), (100.0, 4.0));
        clock.0.set(8_000);
        assert_eq!(snapshot(&mut watch).model.pages_in_per_s, 50.0, "a status is no tick");
    }

    #[test]
    fn a_status_shows_what_is_applied_and_a_wrong_prediction() {
        let (machine, clock) = (FakeKernel::new(), ManualClock::default());
        let root = machine.root();
        let prediction = Prediction { ratio: 3.0, ..Prediction::default() };
        let plan = Plan { remedy: "swap".into(), prediction: Some(prediction), ..Plan::default() };
        state::save(&root, state::APPLIED, &Applied { unix_s: 1, plans: vec![plan], ..Applied::default() })
            .unwrap();
        machine.add_area("/dev/zram0", 65_536, 20_480, 100);
        machine.put("sys/block/zram0/disksize", "67108864\n");
        machine.put("sys/block/zram0/mm_stat", "20971520 9000000 10485760 0 10485760 0 0 0 0\n");
        let mut watch = Watch::new(&root, &clock, settings(), ChildService::none());
        watch.tick();
        let shown = snapshot(&mut watch);
        assert!(shown.applied);
        assert_eq!(shown.backend, "zram (lzo-rle)");
        let events: Vec<&str> = shown.events.iter().map(|e| e.text.as_str()).collect();
        assert_eq!(events[0], "Adopted the applied plan; changes in force: 0.");
        assert!(events[1].contains("is 2.0 for 20 MiB, predicted was 3.0"), "{events:?}");
    }

    /// Prefetch alone, or the governor, is no reason to end a program.
    #[test]
    fn the_guard_runs_only_with_a_plan_or_if_it_is_asked_for() {
        let (machine, clock) = (FakeKernel::new(), ManualClock::default());
        let root = machine.root();
        let runs = |plans: &[Plan], enabled: Enabled| {
            let applied = Applied { plans: plans.to_vec(), ..Applied::default() };
            state::save(&root, state::APPLIED, &applied).unwrap();
            let mut settings = settings();
            settings.guard.enabled = enabled;
            let mut watch = Watch::new(&root, &clock, settings, ChildService::none());
            watch.tick();
            watch.wake_guard();
            (watch.next_guard_ms().is_some(), snapshot(&mut watch).guard.is_some())
        };
        let plan = [Plan::default()];
        assert_eq!(runs(&[], Enabled::Auto), (false, false));
        assert_eq!(runs(&[], Enabled::On), (true, true));
        assert_eq!(runs(&plan, Enabled::Auto), (true, true));
        state::forget(&root, state::APPLIED).unwrap();
        let mut watch = Watch::new(&root, &clock, settings(), ChildService::none());
        assert_eq!((watch.guards(), snapshot(&mut watch).guard), (false, None));
    }

    /// A tick would be up to ten seconds later.
    #[test]
    fn the_guards_poll_relieves_memory_that_is_short() {
        let (machine, clock) = (FakeKernel::new(), ManualClock::default());
        let root = machine.root();
        let spec = serde_json::json!({
            "do": "add_zram", "algorithm": "lz4", "backing_dev": "/dev/loop9", "disksize": 1 << 26, "swap_priority": 100
        });
        let mut plan = Plan { remedy: "swap".into(), ..Plan::default() };
        plan.push(serde_json::from_value(spec).unwrap(), Reason::new("a test"));
        Session::open(&root, "swap").unwrap().apply_plan(&plan).unwrap();
        let applied = Applied { plans: vec![plan], ..Applied::default() };
        state::save(&root, state::APPLIED, &applied).unwrap();
        machine.put("sys/block/zram1/mm_stat", "60000000 0 30000000 0 0 0 0 100 100\n");
        let mut watch = Watch::new(&root, &clock, settings(), ChildService::none());
        watch.tick();
        clock.0.set(10_000);
        watch.tick();
        let waits = "avg10=20.00 avg60=0.00 avg300=0.00 total=9";
        machine.put("proc/pressure/memory", &format!("some {waits}\nfull {waits}\n"));
        machine.put("proc/meminfo", "MemTotal: 1024000 kB\nMemFree: 90000 kB\nMemAvailable: 90000 kB\n");
        clock.0.set(10_250);
        watch.children.training = Training::of("/bin/sleep".into(), vec!["1000".into()]);
        watch.children.training.start().unwrap();
        watch.guard();
        wait_for("the training's end", || watch.children.training.has_ended());
        wait_for("a mark", || machine.log().iter().any(|line| line.ends_with("zram1/idle")));
    }

    /// The guard sees a shortage by less than maintenance needs, and it may be off.
    #[test]
    fn a_drain_is_polled_often_and_ends_when_the_guard_sees_a_shortage() {
        let (machine, clock) = (FakeKernel::new(), ManualClock::default());
        let root = machine.root();
        let mut plan = Plan { remedy: "swap".into(), ..Plan::default() };
        for priority in [100, 101] {
            let spec = serde_json::json!({
                "do": "add_zram", "algorithm": "lz4", "disksize": 1 << 26, "swap_priority": priority
            });
            plan.push(serde_json::from_value(spec).unwrap(), Reason::new("a test"));
        }
        Session::open(&root, "swap").unwrap().apply_plan(&plan).unwrap();
        let applied = Applied { plans: vec![plan], ..Applied::default() };
        state::save(&root, state::APPLIED, &applied).unwrap();
        machine.hold_swapoffs(true);
        let mut watch = Watch::new(&root, &clock, settings(), ChildService::none());
        wait_for("a drain", || {
            clock.0.set(clock.0.get() + 10_000);
            watch.tick();
            watch.live.draining().is_some()
        });
        clock.0.set(clock.0.get() + 60_000);
        assert_eq!(watch.next_guard_ms(), Some(clock.0.get() + POLL_MS));
        watch.guard();
        assert_eq!(watch.live.draining(), Some("zram1"));
        // With the room of both devices this is none: 60 MiB, and half of each device.
        let memory = "MemTotal: 1024000 kB\nMemFree: 61440 kB\nMemAvailable: 61440 kB\n";
        machine.put("proc/meminfo", memory);
        watch.guard();
        assert!(watch.guard.level() >= Level::Short);
        wait_for("its end", || {
            clock.0.set(clock.0.get() + 10_000);
            watch.tick();
            watch.live.draining().is_none()
        });
        assert_eq!(eke_linux::read::swaps(&root).unwrap().len(), 2);
    }

    /// At the agent's start, and when a training has ended.
    #[test]
    fn the_scratch_device_of_a_killed_training_is_removed() {
        let (machine, clock) = (FakeKernel::new(), ManualClock::default());
        let root = machine.root();
        let leave = || {
            let spec = serde_json::json!({ "algorithm": "lz4", "disksize": 1 << 20 });
            let spec = serde_json::from_value(spec).unwrap();
            let mut killed = Session::open(&root, eke_swap::remedy::MEASURE).unwrap();
            let device = killed.scratch_zram(&spec, Reason::new("a test")).unwrap();
            format!("sys/block/{device}")
        };
        let device = leave();
        let mut watch = Watch::new(&root, &clock, settings(), ChildService::none());
        assert!(!root.exists(device));
        let device = leave();
        watch.train();
        assert!(root.exists(&device), "no training has ended");
        watch.children.training = Training::of("/bin/true".into(), Vec::new());
        watch.children.training.start().unwrap();
        wait_for("its removal", || {
            watch.train();
            !root.exists(&device)
        });
    }

    #[test]
    fn a_group_is_named_only_if_it_is_at_its_limit() {
        let (machine, clock) = (FakeKernel::new(), ManualClock::default());
        let root = machine.root();
        machine.put("proc/meminfo", "MemTotal: 1024000 kB\nMemFree: 700000 kB\nMemAvailable: 800000 kB\n");
        let waits = "some avg10=60.00 avg60=9.00 avg300=2.00 total=900\nfull avg10=30.00 avg60=4.00 avg300=1.00 total=500\n";
        machine.put("proc/pressure/memory", waits);
        let mut watch = Watch::new(&root, &clock, settings(), ChildService::none());
        assert_eq!(snapshot(&mut watch).group_at_limit, None, "a shortage that is over");
        machine.put("sys/fs/cgroup/user.slice/memory.max", "1000000\n");
        machine.put("sys/fs/cgroup/user.slice/memory.current", "999000\n");
        machine.put("sys/fs/cgroup/user.slice/memory.pressure", waits);
        clock.0.set(4_000);
        assert_eq!(snapshot(&mut watch).group_at_limit.as_deref(), Some("user.slice"));
    }

    #[test]
    fn a_machine_that_cannot_be_sampled_is_reported_once() {
        let (machine, clock) = (FakeKernel::new(), ManualClock::default());
        let root = machine.root();
        std::fs::remove_file(machine.dir().join("proc/vmstat")).unwrap();
        let mut watch = Watch::new(&root, &clock, settings(), ChildService::none());
        watch.tick();
        watch.tick();
        let events = snapshot(&mut watch).events;
        assert_eq!(events.len(), 2);
        assert!(events[1].text.contains("proc/vmstat"), "{events:?}");
    }

    #[test]
    fn a_snapshot_has_the_machines_own_counters() {
        let machine = FakeKernel::new();
        machine.put("proc/pressure/io", "some avg10=2.50 avg60=0.00 avg300=0.00 total=7\n");
        let (root, clock) = (machine.root(), ManualClock::default());
        let mut watch = Watch::new(&root, &clock, settings(), ChildService::none());
        let seen = snapshot(&mut watch);
        assert_eq!(seen.unix_s, 1_000_000);
        assert_eq!(seen.machine.memory.anonymous, Bytes(200_000 << 10));
        assert_eq!(seen.machine.io_pressure.map(|p| p.some_avg10), Some(2.5));
        assert_eq!(seen.machine.cpu_pressure, None);
    }

    /// The state that `eke-io` published reaches every client while its process is the agent's child.
    #[test]
    fn the_state_of_a_child_is_passed_on() {
        let machine = FakeKernel::new();
        let (root, clock) = (machine.root(), ManualClock::default());
        state::save(&root, state::APPLIED, &Applied::default()).unwrap();
        let io = ChildService::of("/bin/sleep".into(), vec!["1000".into()]);
        let mut governs = settings();
        governs.io.govern = Enabled::On;
        let children = ChildServices { io, ..ChildService::none().into() };
        let mut watch = Watch::new(&root, &clock, governs, children);
        watch.tick();
        let pid = watch.children.io.pid().unwrap();
        let mut reads = eke_model::histogram::Histogram::default();
        reads.record(90_000);
        let kind = IoLatency { operation: "read".into(), all: reads, late: reads };
        let published = IoState { pid, latencies: vec![kind], late_ms: 10_000, ..IoState::default() };
        state::save(&root, state::IO, &published).unwrap();
        watch.rendered.clear();
        assert_eq!(snapshot(&mut watch).io, Some(published.clone()));
        state::save(&root, state::IO, &IoState { pid: pid + 1, ..published }).unwrap();
        watch.rendered.clear();
        assert_eq!(snapshot(&mut watch).io, None, "an earlier one's");
        watch.children.io.supervise(false, 0);
        wait_for("its end", || {
            watch.children.io.supervise(false, 0);
            watch.children.io.pid().is_none()
        });
    }

    #[test]
    fn the_resident_set_is_in_pages() {
        assert_eq!(resident("2000 512 300 1 0 99 0\n", 4096), Bytes::mib(2));
    }
}
