//! What happened in a session, one JSON object a line.

use eke_model::units::Bytes;
use serde::{Deserialize, Serialize};

/// Something happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The screen and the window manager are there, the ballast is filled.
    Ready {
        /// Since the start.
        seconds: f64,
    },
    /// The first page of a document (a tab) is drawn.
    Opened {
        /// Which.
        document: usize,
        /// Since the viewer was started (the tab was asked for).
        seconds: f64,
        /// A hash of what the window shows.
        content: u64,
    },
    /// A page was turned and is drawn.
    Page {
        /// Of which document.
        document: usize,
        /// Which, counted from 0.
        page: u32,
        /// Towards the beginning.
        back: bool,
        /// Since it was asked for.
        seconds: f64,
        /// A hash of what the window shows.
        content: u64,
        /// Is it what was expected? `None` where nothing was; `false` if the window stayed otherwise.
        as_expected: Option<bool>,
    },
    /// A window (a tab) was asked for and is drawn.
    Switched {
        /// Which document's.
        document: usize,
        /// Since it was asked for.
        seconds: f64,
    },
    /// What is held, after each `Open` and each `Browse`.
    Held(Held),
    /// The session is over, the last line. A session without it was killed itself.
    Ended(End),
}

/// The memory of the documents' processes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Held {
    /// Documents (tabs) that are open.
    pub documents: usize,
    /// Their anonymous memory that is resident.
    pub anonymous: Bytes,
    /// Their memory that is in swap, uncompressed.
    pub swapped: Bytes,
    /// Their file pages and shared memory that are resident, counted for each process.
    pub file: Bytes,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "kebab-case")]
pub enum End {
    /// All was done.
    Finished,
    /// A process of it was killed, or died.
    Killed {
        /// What: `viewer of document 3`, `ballast`, `X server`.
        what: String,
        /// The signal; `None` if it ended by itself.
        signal: Option<i32>,
    },
    /// A window was not drawn within the session's patience.
    TooSlow {
        /// What was waited for: `page 7 of document 2`.
        what: String,
    },
    /// It could not be held: a program is missing, the display refuses.
    Failed {
        /// Why, in a sentence.
        why: String,
    },
}
