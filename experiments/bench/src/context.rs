//! The context of verbs, and their output.

use eke_linux::Root;
use eke_present::document;
use eke_present::exit::{Failure, Outcome, Status};
use serde::Serialize;

/// The context of a verb.
pub struct Context {
    /// The machine.
    pub root: Root,
    /// Print JSON.
    pub json: bool,
    /// The command line that repeats the experiment, without sudo.
    pub command: String,
}

impl Context {
    /// Prints a document as JSON, or as text by `show`.
    pub fn print<T: Serialize>(&self, document: &T, show: impl FnOnce(&T)) -> Outcome<()> {
        document::print(self.json, document, show)
    }

    /// Refuses users other than root, with the reason.
    pub fn need_root(&self, why: &str) -> Outcome<()> {
        if rustix::process::geteuid().is_root() || !self.root.is_host() {
            return Ok(());
        }
        Err(Failure::new(Status::NotPermitted, why).hint("try again with sudo"))
    }
}
