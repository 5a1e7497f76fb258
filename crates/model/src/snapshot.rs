//! What `eke status` shows, and the messages on the agent's socket: one JSON object per line in each direction.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::model::Model;
use crate::sample::{Memory, Pressure, Sample, VmCounters};
use crate::step::Prediction;
use crate::units::{Bytes, Nanos};

/// A client's request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ask")]
pub enum Request {
    /// Send the current state; open to everybody.
    Status,
    /// Send each important event, the kept ones first, until the client disconnects; open to everybody.
    Watch,
    /// Exit, and leave everything applied in place; root only.
    Stop,
    /// Read the plan again, because `eke up` changed it; root only.
    Reload,
}

/// The agent's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum Response {
    /// To `Status`.
    Status(Box<Snapshot>),
    /// To `Stop`, `Reload` and `Watch`.
    Done,
    /// To a client that watches: an important event.
    Event(Event),
    /// Not permitted or not understood; the sentence says why and names valid requests.
    Refused {
        /// The sentence for the user.
        reason: String,
        /// Whether root would be permitted.
        needs_root: bool,
    },
}

/// The agent itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentState {
    /// Its process id.
    pub pid: u32,
    /// Seconds since it started.
    pub up_s: u64,
    /// Its resident set.
    pub resident: Bytes,
    /// Its own CPU time in milliseconds.
    pub cpu_ms: u64,
}

/// What `eke-prefetch` did. It has numbers only: users must not see which programs others start.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PrefetchState {
    /// Its process id.
    pub pid: u32,
    /// Seconds since it started.
    pub up_s: u64,
    /// How it observes launches, and why by no better source.
    pub source: String,
    /// Why it reads nothing ahead now; `None` if it may.
    pub off: Option<String>,
    /// Programs with learned page sets.
    pub programs: u64,
    /// Launches observed since it started.
    pub launches: u64,
    /// Launches that it learned from.
    pub learned: u64,
    /// Launches of programs that it had read ahead.
    pub predicted: u64,
    /// Bytes read ahead of predicted launches.
    pub ahead: Bytes,
    /// Bytes chosen for programs that started in time; an upper bound of what they used.
    pub used: Bytes,
    /// Bytes read at the moment of a launch.
    pub at_exec: Bytes,
    /// What it gains on this machine, measured.
    pub effect: PrefetchEffect,
}

/// What prefetch gains on this machine: recorded starts that it left alone by chance, beside the others. It has numbers only.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PrefetchEffect {
    /// Recorded starts that were left alone.
    pub left_alone: u64,
    /// The other recorded starts of the same programs.
    pub others: u64,
    /// Seconds that a start takes less than one that was left alone: the lower end of the interval of 95 %, the mean, the upper end. `None` until
    /// [`Self::LEAST`] starts of each kind, of one program, were recorded.
    pub saved_s: Option<[f64; 3]>,
    /// Starts that eke read for, recorded or not.
    pub read_for: u64,
    /// Those of them whose program's difference is known.
    pub summed: u64,
    /// Seconds saved in all of these, with the same interval.
    pub total_s: Option<[f64; 3]>,
    /// Of the program with the most: the starts that were left alone, or the others, whichever are fewer.
    pub nearest: u64,
}

impl PrefetchEffect {
    /// The fewest recorded starts of each kind of a program whose difference counts: a variance needs two.
    pub const LEAST: u64 = 2;
}

/// The kernel's own counters, from which the model computes its rates and shares. Plots and exporters use them.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Machine {
    /// How RAM is divided.
    pub memory: Memory,
    /// Counters since boot.
    pub vm: VmCounters,
    /// Stalls on memory; `None` where the kernel does not count them.
    pub memory_pressure: Option<Pressure>,
    /// Stalls on reads and writes.
    pub io_pressure: Option<Pressure>,
    /// Stalls on CPUs.
    pub cpu_pressure: Option<Pressure>,
    /// Size in bytes of the pages that `vm` counts.
    pub page_bytes: u64,
    /// Bytes that zram has on its backing devices; `None` without a backing device.
    pub written_back: Option<Bytes>,
}

impl From<&Sample> for Machine {
    fn from(sample: &Sample) -> Self {
        let written: Vec<Bytes> = sample.zram.iter().filter_map(|z| z.written_back).collect();
        Self {
            memory: sample.memory,
            vm: sample.vm,
            memory_pressure: sample.pressure,
            io_pressure: sample.io_pressure,
            cpu_pressure: sample.cpu_pressure,
            page_bytes: if sample.page_bytes == 0 { 4096 } else { sample.page_bytes },
            written_back: (!written.is_empty()).then(|| written.into_iter().sum()),
        }
    }
}

/// What the guard did when memory was short. It has no names: users must not see which programs others run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct GuardState {
    /// Why it does nothing; `None` if it is on.
    pub off: Option<String>,
    /// Another program acts first, so it only ends a program, when memory has been exhausted for seconds: why, as a sentence's end.
    pub last_resort: Option<String>,
    /// The kernel has no pressure-stall information (PSI), so it acts only when memory is exhausted.
    pub without_psi: bool,
    /// How often it stopped a program for a moment since the agent started.
    pub stops: u64,
    /// How many programs it ended since the agent started.
    pub ended: u64,
    /// The first process of the last one.
    pub ended_pid: Option<u32>,
}

/// What `eke-io` does to keep reads fast beside writers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct IoState {
    /// Its process id.
    pub pid: u32,
    /// Seconds since it started.
    pub up_s: u64,
    /// How latencies are measured: `bpf` or `stat`.
    pub source: String,
    /// Changes made since it started.
    pub changes: u64,
    /// The last change, with its reason.
    pub last: Option<String>,
    /// Median of recent synchronous reads of all disks.
    pub reads_p50: Option<Nanos>,
    /// Their 99th percentile.
    pub reads_p99: Option<Nanos>,
    /// The disks that it governs.
    pub disks: Vec<IoDisk>,
    /// Request latencies of all disks but those in memory, by kind; only kinds that occurred.
    pub latencies: Vec<IoLatency>,
    /// The time span of `late` in [`IoLatency`], in milliseconds.
    pub late_ms: u64,
}

/// Latencies of one kind of request, from its creation to its completion.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct IoLatency {
    /// `read` (includes readahead), `write` (includes writeback), `discard` or `flush`.
    pub operation: String,
    /// Since `eke-io` started. Buckets are empty where only averages are known (`source` is `stat`).
    pub all: Histogram,
    /// The last `late_ms` milliseconds.
    pub late: Histogram,
}

/// A governed disk.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct IoDisk {
    /// The kernel's name.
    pub name: String,
    /// Target latency of reads.
    pub target: Nanos,
    /// Settings that were changed, with their original values.
    pub changed: Vec<String>,
    /// Seconds until the next attempt, after it gave up.
    pub rests_s: Option<u64>,
}

/// The current state. It contains nothing private to a user, except names of programs, which [`Self::for_reader`] leaves to those who may know them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Snapshot {
    /// The agent; `None` if none runs and the client read the machine itself.
    pub agent: Option<AgentState>,
    /// Why an agent that runs does not answer; the client read the machine itself then, too.
    #[serde(default)]
    pub agent_silent: Option<String>,
    /// Whether a plan of eke's is applied.
    pub applied: bool,
    /// The compressed swap in use: `zram (zstd)`, `zswap (lzo)` or `none`.
    pub backend: String,
    /// What the applied plan predicted.
    pub prediction: Option<Prediction>,
    /// Time of the snapshot in seconds since 1970; 0 from an agent that does not send it.
    #[serde(default)]
    pub unix_s: u64,
    /// Rates and shares.
    pub model: Model,
    /// The counters behind them.
    #[serde(default)]
    pub machine: Machine,
    /// The control group that is at its memory limit while tasks wait for memory and the machine has plenty.
    #[serde(default)]
    pub group_at_limit: Option<String>,
    /// Learning and prefetching of launches; `None` where nothing does that.
    #[serde(default)]
    pub prefetch: Option<PrefetchState>,
    /// Throttling of writers; `None` where nothing does that.
    #[serde(default)]
    pub io: Option<IoState>,
    /// The guard; `None` where no agent runs or no plan is applied.
    #[serde(default)]
    pub guard: Option<GuardState>,
    /// What the agent did or noticed, oldest first, at most [`EVENTS_KEPT`].
    pub events: Vec<Event>,
    /// The ends of programs by the guard since the agent started, oldest first, at most [`ENDED_KEPT`]: later events do not push them out.
    #[serde(default)]
    pub ended: Vec<Event>,
}

impl Snapshot {
    /// True if tasks wait for memory while the machine has plenty.
    pub fn waits_with_plenty(&self) -> bool {
        waits_with_plenty(&self.model, &self.machine)
    }

    /// With the names that this user may know.
    #[must_use]
    pub fn for_reader(mut self, uid: u32) -> Self {
        for event in self.events.iter_mut().chain(&mut self.ended) {
            event.hide_from(uid);
        }
        self
    }

    /// Without names of programs: for a page that other users read, or a report that leaves the machine. A group is often called by its program, so only
    /// the part of the tree that it is in is left.
    #[must_use]
    pub fn for_all(mut self) -> Self {
        if let Some(group) = &mut self.group_at_limit {
            group.truncate(group.find('/').unwrap_or(group.len()));
        }
        self.for_reader(NOBODY)
    }
}

/// With more than this share available the kernel reclaims only from groups at their limit.
const PLENTY_AVAILABLE: f64 = 0.50;
/// Waiting from this share of the last 10 s on, in percent, is a shortage.
const WAITS: f64 = 1.0;

/// True if tasks wait for memory while the machine has plenty.
pub fn waits_with_plenty(model: &Model, machine: &Machine) -> bool {
    let waits = machine.memory_pressure.is_some_and(|p| p.some_avg10 >= WAITS);
    waits && model.available.0 as f64 > PLENTY_AVAILABLE * model.ram.0 as f64
}

/// Most events in a snapshot.
pub const EVENTS_KEPT: usize = 20;
/// Most ends of programs in a snapshot.
pub const ENDED_KEPT: usize = 16;
/// The kernel shows every user by this uid whom it cannot name (`overflowuid`), so it is no user's own.
pub const NOBODY: u32 = 65_534;

/// An action or observation of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// Seconds since 1970.
    pub unix_s: u64,
    /// A full sentence with values and units. It names no program.
    pub text: String,
    /// Whether a person should see it: something stopped or could not be done. An older agent does not say.
    #[serde(default)]
    pub important: bool,
    /// The program of a user that it is about; `None` if it is about none. An older agent does not say.
    #[serde(default)]
    pub program: Option<Program>,
}

impl Event {
    /// With the program's name only if this user may know it.
    #[must_use]
    pub fn for_reader(mut self, uid: u32) -> Self {
        self.hide_from(uid);
        self
    }

    fn hide_from(&mut self, uid: u32) {
        if let Some(program) = self.program.as_mut().filter(|program| !program.may_be_known_to(uid)) {
            program.name = None;
        }
    }

    /// The program's name, as far as the reader may know it.
    pub fn name(&self) -> Option<&str> {
        self.program.as_ref()?.name.as_deref()
    }

    /// The sentence with the name, if it has one: `"leak": Ended: process 7 of user 1000`. The name stands first, so that a log that counts
    /// similar lines tells programs apart. It contains no quotes.
    pub fn named(&self) -> Cow<'_, str> {
        match self.name() {
            Some(name) => format!("\"{name}\": {}", self.text).into(),
            None => self.text.as_str().into(),
        }
    }
}

/// A program of a user. Others must not see by eke which programs a user runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Program {
    /// Its user; of several processes the largest one's.
    pub uid: u32,
    /// What it calls itself, and the unit if all of that is meant: `leak (leak.service)`. `None` for readers other than root and this user.
    pub name: Option<String>,
}

impl Program {
    /// Whether this user may know its name.
    pub fn may_be_known_to(&self, uid: u32) -> bool {
        uid == 0 || (uid == self.uid && uid != NOBODY)
    }
}

/// A sentence before the time is added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// A full sentence with values and units.
    pub text: String,
    /// Whether a person should see it.
    pub important: bool,
    /// The program that it is about.
    pub program: Option<Program>,
    /// Whether it says that the program was ended.
    pub is_end: bool,
}

impl Message {
    /// One that a person should see.
    pub fn important(text: impl Into<String>) -> Self {
        Self { important: true, ..Self::from(text) }
    }

    /// The same about this program.
    #[must_use]
    pub fn about(self, program: Program) -> Self {
        Self { program: Some(program), ..self }
    }
}

/// One for the log and the list of events.
impl<T: Into<String>> From<T> for Message {
    fn from(text: T) -> Self {
        Self { text: text.into(), important: false, program: None, is_end: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_agent_sends_less() {
        let mut old = serde_json::to_value(Snapshot::default()).unwrap();
        for later in ["unix_s", "machine", "prefetch", "ended"] {
            old.as_object_mut().unwrap().remove(later).unwrap();
        }
        assert_eq!(serde_json::from_value::<Snapshot>(old).unwrap(), Snapshot::default());
    }

    #[test]
    fn an_older_agents_event_is_about_no_program() {
        let old: Event = serde_json::from_str(r#"{"unix_s":7,"text":"a"}"#).unwrap();
        assert_eq!((old.name(), old.named().as_ref(), old.important), (None, "a", false));
    }

    #[test]
    fn only_root_and_its_user_learn_a_programs_name() {
        let event = |uid| Event {
            text: "Ended: process 7".into(),
            program: Some(Program { uid, name: Some("leak".into()) }),
            ..Event::default()
        };
        let snapshot =
            |uid| Snapshot { events: vec![event(uid)], ended: vec![event(uid)], ..Snapshot::default() };
        let seen = |owner, reader| {
            let seen = snapshot(owner).for_reader(reader);
            assert_eq!(seen.events, seen.ended);
            assert_eq!(seen.ended, [event(owner).for_reader(reader)]);
            assert_eq!(seen.ended[0].program.as_ref().unwrap().uid, owner, "the sentence says it, too");
            seen.ended[0].named().into_owned()
        };
        let (with, without) = ("\"leak\": Ended: process 7", "Ended: process 7");
        assert_eq!([seen(1000, 0), seen(1000, 1000), seen(0, 0)], [with; 3]);
        assert_eq!([seen(1000, 1001), seen(0, 1000), seen(1000, u32::MAX)], [without; 3]);
        assert_eq!(seen(NOBODY, NOBODY), without, "whom the kernel cannot name");
        assert_eq!(snapshot(NOBODY).for_all().ended[0].name(), None);
        assert_eq!(snapshot(0).for_all().events[0].name(), None);
    }

    #[test]
    fn a_page_for_all_names_no_group_of_a_user() {
        let at = |group: &str| {
            let snapshot = Snapshot { group_at_limit: Some(group.into()), ..Snapshot::default() };
            snapshot.for_all().group_at_limit.unwrap()
        };
        assert_eq!(at("user.slice/user-1000.slice/app-diary.scope"), "user.slice");
        assert_eq!(at("system.slice"), "system.slice");
    }

    #[test]
    fn an_older_governor_sends_less() {
        let io: IoState = serde_json::from_str(r#"{"pid":7,"source":"bpf","reads_p99":4000}"#).unwrap();
        assert_eq!((io.pid, io.reads_p99, io.late_ms), (7, Some(Nanos(4_000)), 0));
        assert!(io.latencies.is_empty());
    }

    #[test]
    fn the_machines_counters_are_those_of_the_sample() {
        let some = |some_avg10| Some(Pressure { some_avg10, ..Pressure::default() });
        let back =
            |mib| crate::sample::ZramStat { written_back: Some(Bytes::mib(mib)), ..Default::default() };
        let sample = Sample {
            pressure: some(1.0),
            io_pressure: some(2.0),
            zram: vec![back(2), crate::sample::ZramStat::default(), back(3)],
            ..Sample::default()
        };
        let machine = Machine::from(&sample);
        assert_eq!(
            (machine.memory_pressure, machine.io_pressure, machine.cpu_pressure),
            (some(1.0), some(2.0), None)
        );
        assert_eq!((machine.written_back, machine.page_bytes), (Some(Bytes::mib(5)), 4096));
        assert_eq!(Machine::from(&Sample::default()).written_back, None);
    }

    #[test]
    fn messages_are_one_line_each() {
        let line = serde_json::to_string(&Request::Status).unwrap();
        assert_eq!(line, r#"{"ask":"status"}"#);
        let answer = Response::Status(Box::default());
        let line = serde_json::to_string(&answer).unwrap();
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<Response>(&line).unwrap(), answer);
    }
}
