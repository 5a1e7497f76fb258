//! The description of a session. Its text form is JSON.

use std::path::PathBuf;

use eke_model::units::Bytes;
use serde::{Deserialize, Serialize};

/// A session of documents in windows, from its start to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The screen's width and height in pixels.
    pub screen: (u16, u16),
    /// The viewer, by its name in the driver's table.
    pub viewer: String,
    /// The documents, by their paths in the driver's tree.
    pub documents: Vec<PathBuf>,
    /// The memory that stands for the rest of a desktop.
    pub ballast: Ballast,
    /// Whether to ask the kernel to merge equal pages of the session's programs (`PR_SET_MEMORY_MERGE`, Linux 6.4).
    pub merge_same_pages: bool,
    /// The acts, in order.
    pub acts: Vec<Act>,
    /// The longest time for a window to be drawn, in seconds; after it the session ends.
    pub patience_s: f64,
    /// The content of each page of each document ([`super::Event::Page`]'s `content` in a session with enough memory). A
    /// page is drawn when its window shows this content. Without it, a page is drawn when its window has changed and then
    /// stays unchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<Vec<u64>>,
}

/// Memory that a desktop would use: filled once, then touched so rarely that the kernel may swap it out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ballast {
    /// Its size; 0 for none.
    pub size: Bytes,
    /// The compression ratio of its pages.
    pub ratio: f64,
}

/// One act. It lasts until its result is drawn. Documents are indices into [`Spec::documents`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Act {
    /// Starts a viewer with this document.
    Open {
        /// The document's index.
        document: usize,
    },
    /// Goes forth (or back) by some pages. Each is drawn before the next is requested. First brings the document's window to the
    /// front, untimed.
    Browse {
        /// The document's index.
        document: usize,
        /// How many pages to turn.
        pages: u32,
        /// Whether to go towards the beginning.
        back: bool,
    },
    /// Brings the window of this document to the front.
    Switch {
        /// The document's index.
        document: usize,
    },
    /// Does nothing for this long, so that background work can run.
    Rest {
        /// The time in milliseconds.
        ms: u64,
    },
}
