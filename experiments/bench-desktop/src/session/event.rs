//! The events of a session, one JSON object a line.

use eke_model::units::Bytes;
use serde::{Deserialize, Serialize};

/// One event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The screen and the window manager run, and the ballast is filled.
    Ready {
        /// Seconds since the start.
        seconds: f64,
    },
    /// The first page of a document (a tab) is drawn.
    Opened {
        /// The document's index.
        document: usize,
        /// Seconds since the viewer was started (since the tab was requested).
        seconds: f64,
        /// A hash of what the window shows.
        content: u64,
    },
    /// A page was turned and is drawn.
    Page {
        /// The document's index.
        document: usize,
        /// The page, counted from 0.
        page: u32,
        /// Whether it was turned towards the beginning.
        back: bool,
        /// Seconds since the request.
        seconds: f64,
        /// A hash of what the window shows.
        content: u64,
        /// Whether the content was expected; `None` without an expectation.
        as_expected: Option<bool>,
    },
    /// A window (a tab) was requested and is drawn.
    Switched {
        /// The document's index.
        document: usize,
        /// Seconds since the request.
        seconds: f64,
    },
    /// The memory in use, after each `Open` and each `Browse`.
    Memory(MemoryUse),
    /// The session has ended: the last line. Without it the session's driver was killed.
    Ended(End),
}

/// The memory of the documents' processes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MemoryUse {
    /// Documents (tabs) that are open.
    pub documents: usize,
    /// Resident anonymous memory.
    pub anonymous: Bytes,
    /// Memory in swap, uncompressed.
    pub swapped: Bytes,
    /// Resident file pages and shared memory, counted for each process.
    pub file: Bytes,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "kebab-case")]
pub enum End {
    /// All acts were done.
    Finished,
    /// One of its processes was killed, or died.
    Killed {
        /// The process: `viewer of document 3`, `ballast`, `X server`.
        what: String,
        /// The signal; `None` if the process ended by itself.
        signal: Option<i32>,
    },
    /// A window was not drawn within the session's patience.
    TooSlow {
        /// The awaited drawing: `page 7 of document 2`.
        what: String,
    },
    /// The session could not run: a program is missing, or the display refuses.
    Failed {
        /// Why, in a sentence.
        why: String,
    },
}
