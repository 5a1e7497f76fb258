//! Changes of the machine and their reasons, as data that can be printed, applied, journaled and undone.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::process::ProcessId;
use crate::units::Bytes;

/// Why a step is in the plan: a sentence, and its numbers by name and unit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reason {
    /// One sentence for the user, with its numbers in it.
    pub text: String,
    /// The same numbers for programs; the name contains the unit (`load_p99_ns`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub numbers: BTreeMap<String, f64>,
}

impl Reason {
    /// A reason without numbers.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), numbers: BTreeMap::new() }
    }

    /// Adds a number; `name` must contain its unit.
    #[must_use]
    pub fn with(mut self, name: &str, value: f64) -> Self {
        self.numbers.insert(name.to_owned(), value);
        self
    }
}

/// A zram device to create. All but `swap_priority` must be set before the disksize.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ZramSpec {
    /// A name from the device's `comp_algorithm`; empty keeps the kernel's default.
    pub algorithm: String,
    /// The value of `algorithm_params` (Linux 6.12), for example `level=3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<String>,
    /// The path of the algorithm's dictionary (Linux 6.12), which the process that applies the step has in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dictionary: Option<String>,
    /// The second algorithm, for `recomp_algorithm` (Linux 6.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recompress_with: Option<String>,
    /// The block device for `backing_dev` (Linux 4.14).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backing_dev: Option<String>,
    /// Is it encrypted, with a key that nobody keeps?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub backing_encrypted: bool,
    /// A file for it instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backing_file: Option<UnnamedFile>,
    /// The declared size.
    pub disksize: Bytes,
    /// Priority of the swap area on it; `None` for a scratch device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap_priority: Option<i16>,
}

/// A file without a name, that is gone with the device that it is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnnamedFile {
    /// The directory on whose disk it is.
    pub directory: String,
    /// Its size.
    pub size: Bytes,
    /// Is it encrypted, with a key that nobody keeps?
    pub encrypted: bool,
}

impl ZramSpec {
    /// A scratch device: one algorithm (as [`Self::algorithm`]) and its declared size, and nothing else.
    pub fn new(algorithm: impl Into<String>, disksize: Bytes) -> Self {
        Self {
            algorithm: algorithm.into(),
            params: None,
            dictionary: None,
            recompress_with: None,
            backing_dev: None,
            backing_encrypted: false,
            backing_file: None,
            disksize,
            swap_priority: None,
        }
    }

    /// Is a mapping with a key between the device and what is behind it?
    pub fn is_encrypted(&self) -> bool {
        self.backing_encrypted || self.backing_file.as_ref().is_some_and(|file| file.encrypted)
    }

    fn called(&self) -> String {
        let name = if self.algorithm.is_empty() { "the kernel's algorithm" } else { &self.algorithm };
        if self.dictionary.is_some() { format!("{name} with a dictionary") } else { name.to_owned() }
    }
}

/// One change of the machine. Its inverse is data too, in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "do")]
pub enum Step {
    /// Write `value` to a knob of the table; `target` (a device, a group) replaces the `*` in its path.
    Set {
        /// The knob's name in `docs/knobs.md`.
        knob: String,
        /// Replaces the `*` in the knob's path; empty if the path has none.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        target: String,
        /// The value in the knob's unit.
        value: String,
    },
    /// Load a kernel module (most distributions build `zram` as one).
    LoadModule {
        /// Its name.
        name: String,
        /// Its parameters: `num_devices=0`.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        params: String,
    },
    /// Add a zram device (`hot_add`), set it up, and swap on it if the spec has a priority.
    AddZram(ZramSpec),
    /// Swap on an existing area.
    SwapOn {
        /// The device or file.
        path: String,
        /// Its priority; `None` lets the kernel choose.
        priority: Option<i16>,
    },
    /// Swap off an area; the kernel loads its pages first.
    SwapOff {
        /// The device or file.
        path: String,
    },
    /// Stop processes for a moment (`SIGSTOP`).
    Stop {
        /// The processes.
        processes: Vec<ProcessId>,
    },
}

impl Step {
    /// A `Set` of a knob without target.
    pub fn set(knob: &str, value: impl fmt::Display) -> Self {
        Self::Set { knob: knob.to_owned(), target: String::new(), value: value.to_string() }
    }

    /// A `Set` of a knob at `target`.
    pub fn set_at(knob: &str, target: &str, value: impl fmt::Display) -> Self {
        Self::Set { knob: knob.to_owned(), target: target.to_owned(), value: value.to_string() }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set { knob, target, value } if target.is_empty() => write!(f, "set {knob} to {value}"),
            Self::Set { knob, target, value } => write!(f, "set {knob} of {target} to {value}"),
            Self::LoadModule { name, .. } => write!(f, "load the kernel module {name}"),
            Self::AddZram(z) => match z.swap_priority {
                Some(p) => {
                    write!(f, "swap on a new zram device: {}, {}, priority {p}", z.called(), z.disksize)
                }
                None => write!(f, "add a scratch zram device: {}, {}", z.called(), z.disksize),
            },
            Self::SwapOn { path, priority: Some(p) } => write!(f, "swap on {path} with priority {p}"),
            Self::SwapOn { path, priority: None } => write!(f, "swap on {path}"),
            Self::SwapOff { path } => write!(f, "swap off {path}"),
            Self::Stop { processes } => write!(f, "stop {} for a moment", counted(processes.len())),
        }
    }
}

fn counted(processes: usize) -> String {
    if processes == 1 { "one process".to_owned() } else { format!("{processes} processes") }
}

/// A step and its reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedStep {
    /// What to do.
    pub step: Step,
    /// Why.
    pub reason: Reason,
}

/// What a plan predicts. The agent compares it with the machine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prediction {
    /// Uncompressed bytes per byte of pool.
    pub ratio: f64,
    /// How many times its RAM the machine can hold.
    pub holds_times_ram: f64,
    /// Median time to load a page.
    pub load_p50_ns: u64,
    /// 99th percentile of the time to load a page.
    pub load_p99_ns: u64,
    /// Share of the pages that do not compress, 0..=1.
    pub incompressible_share: f64,
}

/// The steps of one remedy, in order; printed before they are applied.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// The remedy that made the plan.
    pub remedy: String,
    /// What to do, in order.
    pub steps: Vec<PlannedStep>,
    /// The predicted effect; `None` if the plan changes nothing that is measured.
    pub prediction: Option<Prediction>,
    /// What the user should know, or do because eke does not.
    pub advice: Vec<Reason>,
}

impl Plan {
    /// Appends a step.
    pub fn push(&mut self, step: Step, reason: Reason) {
        self.steps.push(PlannedStep { step, reason });
    }
}
