//! What eke would change, and why: data that can be printed, applied, journaled and undone.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// Why a step is in the plan: a sentence, and the figures behind it by name and unit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reason {
    /// One sentence for the user, with its figures in it.
    pub text: String,
    /// The same figures for programs; the unit is in the name (`load_p99_ns`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, f64>,
}

impl Reason {
    /// A reason without figures.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), figures: BTreeMap::new() }
    }

    /// The same reason with one more figure; its unit belongs into `name`.
    #[must_use]
    pub fn with(mut self, name: &str, value: f64) -> Self {
        self.figures.insert(name.to_owned(), value);
        self
    }
}

/// A zram device to be made. Everything but `swap_priority` must be set before the disksize.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ZramSpec {
    /// A name from the device's `comp_algorithm`; empty leaves the kernel's default.
    pub algorithm: String,
    /// For `algorithm_params` (Linux 6.12), for example `level=3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<String>,
    /// A second algorithm for `recomp_algorithm` (Linux 6.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recompress_with: Option<String>,
    /// A block device for `backing_dev` (Linux 4.14).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backing_dev: Option<String>,
    /// The declared size.
    pub disksize: Bytes,
    /// Swap on it with this priority; `None` for a scratch device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap_priority: Option<i16>,
}

impl ZramSpec {
    fn called(&self) -> &str {
        if self.algorithm.is_empty() { "the kernel's algorithm" } else { &self.algorithm }
    }
}

/// One change of the machine. Its inverse is data too, in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "do")]
pub enum Step {
    /// Write `value` to a knob of the table; `target` fills the pattern of its path (a device, a group).
    Set {
        /// The knob's name in `docs/knobs.md`.
        knob: String,
        /// What fills the `*` of its path; empty where there is none.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        target: String,
        /// The value in the knob's unit.
        value: String,
    },
    /// Load a kernel module that is not loaded (`zram` is one on most distributions).
    LoadModule {
        /// Its name.
        name: String,
        /// Its parameters: `num_devices=0`.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        params: String,
    },
    /// Ask for a new zram device (`hot_add`), set it up, and swap on it if the spec says so.
    AddZram(ZramSpec),
    /// Swap on an area that exists.
    SwapOn {
        /// The device or file.
        path: String,
        /// Its priority; `None` lets the kernel choose.
        priority: Option<i16>,
    },
    /// Swap off an area; the kernel brings its pages back first.
    SwapOff {
        /// The device or file.
        path: String,
    },
}

impl Step {
    /// A `Set` for a knob without target.
    pub fn set(knob: &str, value: impl fmt::Display) -> Self {
        Self::Set { knob: knob.to_owned(), target: String::new(), value: value.to_string() }
    }

    /// A `Set` for a knob of `target`.
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
        }
    }
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

/// What a plan says will happen; checked against what does.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prediction {
    /// Bytes held per byte of pool.
    pub ratio: f64,
    /// How many times its RAM the machine will hold.
    pub holds_times_ram: f64,
    /// A page comes back in this time: median.
    pub load_p50_ns: u64,
    /// A page comes back in this time: 99 of 100.
    pub load_p99_ns: u64,
    /// Share of pages that do not compress, 0..=1.
    pub incompressible_share: f64,
}

/// The steps of one remedy, in order; printed before they are applied.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// The remedy that made it.
    pub remedy: String,
    /// What to do, in order.
    pub steps: Vec<PlannedStep>,
    /// What it should bring; `None` where it changes nothing that is measured.
    pub prediction: Option<Prediction>,
    /// What the user should know or do that eke does not do.
    pub advice: Vec<Reason>,
}

impl Plan {
    /// Appends a step.
    pub fn push(&mut self, step: Step, reason: Reason) {
        self.steps.push(PlannedStep { step, reason });
    }
}
