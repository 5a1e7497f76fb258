//! What `link --json` prints.

use eke_link::advice::Advice;
use serde::Serialize;

/// `link`.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Link {
    /// In the order of the arguments.
    pub hosts: Vec<Host>,
    /// Files that are written, or would be.
    pub files: Vec<File>,
    /// Notes on these files.
    pub notes: Vec<String>,
}

/// One far end.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Host {
    /// As in the arguments.
    pub host: String,
    /// Measurements and decision; none if it failed.
    pub link: Option<Box<eke_link::measure::Link>>,
    /// Other measures that would help.
    pub advice: Vec<Advice>,
    /// Why it failed.
    pub error: Option<String>,
}

/// A configuration file.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct File {
    /// Where it is.
    pub path: String,
    /// The change in the format of `diff -u`; empty if there is none.
    pub diff: String,
    /// Was it written?
    pub written: bool,
}

/// `link --undo`.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Undo {
    /// Files that were restored, or removed if eke made them.
    pub restored: Vec<String>,
    /// Files that another program changed since, and what to do.
    pub kept: Vec<String>,
}
