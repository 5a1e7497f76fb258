//! `eke`: the verbs. No privileges of its own; what changes the machine is in `eke-apply`.
//!
//! # Layout
//! - [`args`]: every verb and option; help, completions and the man page come from it
//! - [`documents`]: what `--json` prints
//! - [`verbs`]: one file for each verb
//! - [`show`]: numbers and plans as text
//! - [`agent`]: the agent's socket, and starting and stopping the agent

// Everything is printed through `eke_present::terminal`.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod agent;
mod args;
mod documents;
mod schema;
mod show;
mod verbs;

use std::process::ExitCode;

use clap::Parser;
use eke_present::exit::{self, Failure, Status};

fn main() -> ExitCode {
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(e) => return usage(&e),
    };
    exit::end(verbs::run(args))
}

/// Prints clap's message; help and version are no failures.
fn usage(error: &clap::Error) -> ExitCode {
    let printed = error.print();
    if error.use_stderr() {
        return Status::Usage.code();
    }
    exit::end(printed.map(|()| Status::Done).map_err(|e| {
        let reader_is_gone = e.kind() == std::io::ErrorKind::BrokenPipe;
        if reader_is_gone {
            e.into()
        } else {
            Failure::new(Status::Failed, format!("standard output cannot be written: {e}"))
        }
    }))
}
