//! The records of the journal: one JSON object per line.

use eke_model::process::ProcessId;
use eke_model::step::Step;
use serde::{Deserialize, Serialize};

use eke_linux::discard::Discard;

/// Version of the records. It increases when an older eke could not undo the changes of a newer one, or the other way
/// round.
pub const VERSION: u32 = 1;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Sequence number of the change; counts up from 1.
    pub seq: u64,
    /// Its new phase.
    #[serde(flatten)]
    pub phase: Phase,
}

/// The phases of a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "phase")]
pub enum Phase {
    /// The journal's first line.
    Begun {
        /// `/proc/sys/kernel/random/boot_id`.
        boot_id: String,
        /// [`VERSION`] of the eke that began the journal.
        version: u32,
    },
    /// The change is about to be made.
    Intent(Box<Intent>),
    /// The kernel added this device, which is not set up yet.
    Made {
        /// `zram1`.
        device: String,
    },
    /// The change is made.
    #[serde(alias = "draining")]
    Done {
        /// Its device is being swapped off and removed although the plan stays applied: another one replaces it. An older eke does not know this field, and
        /// undoes the change as any other.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        draining: bool,
    },
    /// The change failed and left nothing.
    Failed {
        /// The kernel's answer.
        error: String,
    },
    /// The change is undone.
    Reverted,
    /// The change is left in place, because somebody else changed the setting since.
    Kept {
        /// What was found.
        why: String,
    },
}

/// A change and its inverse.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Intent {
    /// The remedy.
    pub owner: String,
    /// The change.
    pub step: Step,
    /// Its inverse.
    pub undo: Undo,
    /// Why, for the user.
    pub reason: String,
    /// The process that made it.
    pub made_by: Option<eke_linux::cgroup::name::Owner>,
}

/// An inverse as data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "undo")]
pub enum Undo {
    /// Write the old value back, if the setting still has the new one.
    Write {
        /// The knob.
        knob: String,
        /// Its device or group, if any.
        #[serde(default)]
        target: String,
        /// The old value.
        old: String,
        /// The value that eke set.
        new: String,
        /// For a setting that new groups inherit: the cgroup v1 groups that already had the new value, and keep it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        had_it: Vec<String>,
        /// Settings that the kernel changes with this one, with their old values. An older eke does not know this
        /// field; where it matters, the kernel refuses its write, and the change stays in the journal.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        beside: Vec<(String, String)>,
    },
    /// Unload the module.
    UnloadModule {
        /// Its name.
        name: String,
    },
    /// Remove the zram device.
    RemoveZram {
        /// The devices that existed before.
        before: Vec<String>,
        /// The name that the kernel must give the new device.
        expected: String,
    },
    /// Swap the area off again.
    SwapOff {
        /// The device or file.
        path: String,
    },
    /// Swap the area on again.
    SwapOn {
        /// The device or file.
        path: String,
        /// Its priority; `None` if the kernel had chosen it.
        priority: Option<i16>,
        /// Its discard option, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        discard: Option<Discard>,
    },
    /// Let the processes continue (`SIGCONT`).
    Continue {
        /// The processes.
        processes: Vec<ProcessId>,
    },
    /// Nothing: the setting ends with its device or group.
    Nothing,
}

impl Record {
    /// The record as a line, without its line end.
    pub fn to_line(&self) -> String {
        // Serializing strings and numbers cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses a line; `None` for the partial line that a crash leaves.
    ///
    /// # Errors
    /// The line, if it is complete but not a record of this version.
    pub fn from_line(line: &str) -> Result<Option<Self>, String> {
        match serde_json::from_str(line) {
            Ok(record) => Ok(Some(record)),
            Err(_) if serde_json::from_str::<serde_json::Value>(line).is_err() => Ok(None),
            Err(e) => Err(format!("{e} in {line}")),
        }
    }
}
