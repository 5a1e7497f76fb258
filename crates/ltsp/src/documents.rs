//! What `plan`, `install` and `uninstall` print as JSON.

use serde::Serialize;

/// `eke ltsp plan --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// The files that would be written; empty if they are in place.
    pub files: Vec<PlannedFile>,
    /// The commands that would run then.
    pub commands: Vec<Command>,
    /// What the administrator should know, one sentence each.
    pub notes: Vec<String>,
}

/// A file that would be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedFile {
    /// Its path.
    pub path: String,
    /// Why.
    pub reason: String,
    /// Its new text.
    pub text: String,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Command {
    /// As one enters it.
    pub command: String,
    /// What it is for.
    pub reason: String,
}

/// `eke ltsp install --json` and `uninstall --json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Done {
    /// Files that were written or restored.
    pub files: Vec<String>,
    /// Files that somebody else changed since, with the reason why they were left alone.
    pub kept: Vec<String>,
    /// Commands that ran.
    pub ran: Vec<Command>,
    /// Commands that are to be run on that system.
    pub to_run: Vec<Command>,
    /// What the administrator should know, one sentence each.
    pub notes: Vec<String>,
}
