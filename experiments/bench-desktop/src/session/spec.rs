//! What a session is to do. As text it is JSON.

use std::path::PathBuf;

use eke_model::units::Bytes;
use serde::{Deserialize, Serialize};

/// A session of documents in windows, from its start to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The screen, in pixels.
    pub screen: (u16, u16),
    /// The viewer, by its name in the driver's table.
    pub viewer: String,
    /// The documents, as the driver sees them.
    pub documents: Vec<PathBuf>,
    /// What stands for the rest of a desktop.
    pub ballast: Ballast,
    /// Ask the kernel to merge equal pages of the session's programs (`PR_SET_MEMORY_MERGE`, Linux 6.4).
    pub merge_same_pages: bool,
    /// What is done, in order.
    pub acts: Vec<Act>,
    /// The longest that a window may take to be drawn, in seconds; then the session ends.
    pub patience_s: f64,
    /// What each page of each document looks like ([`super::Event::Page`]'s `content` in a session with memory to
    /// spare): a page is drawn when its window shows just that. Where it is not known, a page is drawn when its window
    /// has changed and then stays as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<Vec<u64>>,
}

/// Memory that a desktop would hold: filled once, then touched so rarely that it may be pushed out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ballast {
    /// How much; 0 for none.
    pub size: Bytes,
    /// How many times smaller its pages are after compression.
    pub ratio: f64,
}

/// One thing that is done, and waited for until it is drawn. Documents are counted from 0 in [`Spec::documents`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Act {
    /// A viewer with this document, until its first page is drawn.
    Open {
        /// Which.
        document: usize,
    },
    /// So many pages forth (or back), one after the other, each drawn before the next is asked for. The document's window
    /// is brought to the front before, which is not timed.
    Browse {
        /// Which.
        document: usize,
        /// How many pages are turned.
        pages: u32,
        /// Towards the beginning.
        back: bool,
    },
    /// The window of this document is asked for, until it is drawn.
    Switch {
        /// Which.
        document: usize,
    },
    /// Nothing is asked for, for this long: what works in the background may.
    Rest {
        /// In milliseconds.
        ms: u64,
    },
}
