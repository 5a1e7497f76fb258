//! What `status` shows, and the messages on the agent's socket: one JSON object a line each way.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::model::Model;
use crate::sample::{Memory, Pressure, Sample, VmCounters};
use crate::step::{Plan, Prediction};
use crate::units::{Bytes, Nanos};

/// A request of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ask")]
pub enum Request {
    /// The state now; anybody may ask.
    Status,
    /// Leave, and leave everything that is applied in place; root only.
    Stop,
    /// Read the plan again (`eke up` changed it); root only.
    Reload,
}

/// The agent's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum Response {
    /// To `Status`.
    Status(Box<Snapshot>),
    /// To `Stop` and `Reload`.
    Done,
    /// Not permitted, or not understood; the sentence says which and what would be.
    Refused {
        /// For the user.
        reason: String,
        /// True if root would not have been refused.
        needs_root: bool,
    },
}

/// The agent itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentState {
    /// Its process.
    pub pid: u32,
    /// Seconds since it started.
    pub up_s: u64,
    /// Its resident set.
    pub resident: Bytes,
    /// Its own CPU time in milliseconds.
    pub cpu_ms: u64,
}

/// What `eke-prefetch` did. Numbers only: which programs a user starts is nobody else's business.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PrefetchState {
    /// Its process.
    pub pid: u32,
    /// Seconds since it started.
    pub up_s: u64,
    /// How launches are seen, and why not better.
    pub source: String,
    /// Why it reads nothing ahead now; none: it may.
    pub off: Option<String>,
    /// Programs of which it is known what they read.
    pub programs: u64,
    /// Launches seen since it started.
    pub launches: u64,
    /// Of these, those that were learned from.
    pub learned: u64,
    /// Launches of programs that had been read in before.
    pub predicted: u64,
    /// Bytes read ahead by prediction.
    pub ahead: Bytes,
    /// Of these, those that a launch used within the time for which they were read.
    pub used: Bytes,
    /// Bytes read at the moment of a start.
    pub at_exec: Bytes,
}

/// The machine's own figures, as the kernel gives them: what the rates and shares in the model are made of, for whoever draws or counts.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Machine {
    /// How RAM is split.
    pub memory: Memory,
    /// Counters since boot.
    pub vm: VmCounters,
    /// How tasks waited for memory; `None` where the kernel does not count it.
    pub memory_pressure: Option<Pressure>,
    /// How tasks waited for reads and writes.
    pub io_pressure: Option<Pressure>,
    /// How tasks waited for a CPU.
    pub cpu_pressure: Option<Pressure>,
    /// Size of the pages that `vm` counts.
    pub page_bytes: u64,
    /// What zram wrote on to backing devices and still has there; `None` where none has one.
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

/// What `eke-io` does to keep reads alive under writers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct IoState {
    /// Its process.
    pub pid: u32,
    /// Seconds since it started.
    pub up_s: u64,
    /// How latencies are measured: `bpf` or `stat`.
    pub source: String,
    /// Changes that it made since it started.
    pub changes: u64,
    /// The last of them, with its reason.
    pub last: Option<String>,
    /// Half of the reads of all disks that somebody waited for, of late, took at most this.
    pub reads_p50: Option<Nanos>,
    /// And 99 of 100 this.
    pub reads_p99: Option<Nanos>,
    /// Disks that it governs.
    pub disks: Vec<IoDisk>,
    /// How long requests of all disks but those in memory took, by kind; kinds that had none since it began are absent.
    pub latencies: Vec<IoLatency>,
    /// How many milliseconds `late` of [`IoLatency`] is about.
    pub late_ms: u64,
}

/// How long requests of one kind took, from the making of each to its completion.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct IoLatency {
    /// `read` (readahead is among them), `write` (so is writeback), `discard` or `flush`.
    pub operation: String,
    /// Since `eke-io` began. Its buckets are empty where only averages are known (`source` is `stat`).
    pub all: Histogram,
    /// Of late: see `late_ms`.
    pub late: Histogram,
}

/// A disk that is governed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct IoDisk {
    /// The kernel's name.
    pub name: String,
    /// Reads should be answered within this time.
    pub target: Nanos,
    /// The settings that differ from what they were, with what that was.
    pub changed: Vec<String>,
    /// It gave up, and tries again in so many seconds.
    pub rests_s: Option<u64>,
}

/// What is so now, for every client alike. It holds nothing of any user's.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Snapshot {
    /// The agent, `None` where a client read the machine itself because none runs.
    pub agent: Option<AgentState>,
    /// Is a plan of eke's applied.
    pub applied: bool,
    /// The compressed swap in use: `zram (zstd)`, `zswap (lzo)` or `none`.
    pub backend: String,
    /// What the applied plan said would happen.
    pub prediction: Option<Prediction>,
    /// When this is of, in seconds since 1970; 0 from an agent that does not say.
    #[serde(default)]
    pub unix_s: u64,
    /// What happens.
    pub model: Model,
    /// The figures behind it.
    #[serde(default)]
    pub machine: Machine,
    /// What is learned of launches and read before them; `None` where nothing does that.
    #[serde(default)]
    pub prefetch: Option<PrefetchState>,
    /// What holds writers back when reads starve; `None` where nothing does that.
    #[serde(default)]
    pub io: Option<IoState>,
    /// What the agent did or noticed, newest last, at most [`EVENTS_KEPT`].
    pub events: Vec<Event>,
}

/// How many events a snapshot carries.
pub const EVENTS_KEPT: usize = 20;

/// One thing that the agent did or noticed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// Seconds since 1970.
    pub unix_s: u64,
    /// A full sentence with values and units.
    pub text: String,
}

/// What `eke up` leaves for the agent and for `status`: the plan as applied.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Applied {
    /// Seconds since 1970.
    pub unix_s: u64,
    /// The plans.
    pub plans: Vec<Plan>,
    /// What was said for this once and binds the agent, too.
    pub bounds: Bounds,
}

/// What `eke up` was told on its command line beyond the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Bounds {
    /// The pool's largest share of RAM in percent.
    pub pool_percent: Option<u32>,
    /// A size was given: no further device may be added.
    pub fixed_size: bool,
    /// Hold writers back when reads starve, whatever the configuration says.
    pub govern_io: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_agent_says_less() {
        let mut old = serde_json::to_value(Snapshot::default()).unwrap();
        for later in ["unix_s", "machine", "prefetch"] {
            old.as_object_mut().unwrap().remove(later).unwrap();
        }
        assert_eq!(serde_json::from_value::<Snapshot>(old).unwrap(), Snapshot::default());
    }

    #[test]
    fn an_older_governor_says_less() {
        let io: IoState = serde_json::from_str(r#"{"pid":7,"source":"bpf","reads_p99":4000}"#).unwrap();
        assert_eq!((io.pid, io.reads_p99, io.late_ms), (7, Some(Nanos(4_000)), 0));
        assert!(io.latencies.is_empty());
    }

    #[test]
    fn the_machines_figures_are_those_of_the_sample() {
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
