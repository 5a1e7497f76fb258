//! What stands in the journal: one JSON object a line.

use eke_model::step::Step;
use serde::{Deserialize, Serialize};

use eke_linux::discard::Discard;

/// Of the records below. It counts up when an older eke could not undo what a newer one writes, or the other way round.
pub const VERSION: u32 = 1;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The change that it is about; counts up from 1.
    pub seq: u64,
    /// What happened to it.
    #[serde(flatten)]
    pub phase: Phase,
}

/// A change's life.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "phase")]
pub enum Phase {
    /// The journal's first line.
    Begun {
        /// `/proc/sys/kernel/random/boot_id`.
        boot_id: String,
        /// [`VERSION`] of the eke that began it.
        version: u32,
    },
    /// It is about to be made.
    Intent(Box<Intent>),
    /// The kernel gave it this device, not yet set up.
    Made {
        /// `zram1`.
        device: String,
    },
    /// It is made.
    Done,
    /// It failed and left nothing behind.
    Failed {
        /// The kernel's answer.
        error: String,
    },
    /// It is undone.
    Reverted,
    /// It is left as it is, because somebody else changed it since.
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
        /// Its device or group.
        #[serde(default)]
        target: String,
        /// What it was.
        old: String,
        /// What eke set.
        new: String,
        /// For a setting that new groups inherit: the groups of cgroup v1 that had the new value already, and keep it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        had_it: Vec<String>,
        /// What else changes with it by itself, with what that was. An older eke does not know it: where it matters, the kernel
        /// refuses that one's write, and the change stays in the journal.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        beside: Vec<(String, String)>,
    },
    /// Unload the module that was loaded.
    UnloadModule {
        /// Its name.
        name: String,
    },
    /// Remove the zram device that was made.
    RemoveZram {
        /// The devices that there were before.
        before: Vec<String>,
        /// The name that the kernel gives next.
        expected: String,
    },
    /// Swap it off again.
    SwapOff {
        /// The device or file.
        path: String,
    },
    /// Swap it on again.
    SwapOn {
        /// The device or file.
        path: String,
        /// The priority that it had; `None` if the kernel had chosen it.
        priority: Option<i16>,
        /// The discard option that it had, as far as that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        discard: Option<Discard>,
    },
    /// It goes with the device or group.
    Nothing,
}

impl Record {
    /// One line without its end.
    pub fn to_line(&self) -> String {
        // A record holds strings and numbers only; serialising those cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// `None` for half a line, which a crash leaves.
    ///
    /// # Errors
    /// The line, if it is whole but not a record of this version.
    pub fn from_line(line: &str) -> Result<Option<Self>, String> {
        match serde_json::from_str(line) {
            Ok(record) => Ok(Some(record)),
            Err(_) if serde_json::from_str::<serde_json::Value>(line).is_err() => Ok(None),
            Err(e) => Err(format!("{e} in {line}")),
        }
    }
}
