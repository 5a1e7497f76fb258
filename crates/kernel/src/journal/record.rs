//! What stands in the journal: one JSON object a line.

use eke_core::step::Step;
use serde::{Deserialize, Serialize};

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

    /// `None` for half a line.
    pub fn from_line(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}
