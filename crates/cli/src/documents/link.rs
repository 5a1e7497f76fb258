//! What `link --json` prints.

use eke_link::advice::Advice;
use serde::Serialize;

/// `link`.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Link {
    /// In the order in which they were asked for.
    pub hosts: Vec<Host>,
    /// Files that are written, or would be.
    pub files: Vec<File>,
    /// What somebody should know of that.
    pub notes: Vec<String>,
}

/// One far end.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Host {
    /// As it was asked for.
    pub host: String,
    /// What was measured and decided; none: it failed.
    pub link: Option<Box<eke_link::measure::Link>>,
    /// What else would help.
    pub advice: Vec<Advice>,
    /// Why it failed.
    pub error: Option<String>,
}

/// A configuration file.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct File {
    /// Where it is.
    pub path: String,
    /// What changes in it, as `diff -u` has it; empty: nothing.
    pub diff: String,
    /// Was it written?
    pub written: bool,
}

/// `link --undo`.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Undo {
    /// Files that are as they were, or gone if they were not there.
    pub restored: Vec<String>,
    /// Files that somebody else changed since, and what to do.
    pub kept: Vec<String>,
}
