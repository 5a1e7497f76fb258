//! `eke-bench`: the laboratory of eke. `eke bench X` executes it.
//!
//! # Layout
//! - [`args`]: every verb and option; help, completions and the man page come from it
//! - [`context`]: the machine and the way of printing
//! - [`verbs`]: one file for each group of experiments; [`lab`]: the processes that they start
//! - [`agent`]: the cost of the agent itself; [`replay_report`]: a replay of predictors as a report
//! - [`provenance`]: where results come from; `build.rs` finds the commit
//! - [`documents`], [`show`], [`schema`]: what is printed

// Everything is printed through `eke_present::terminal`.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod agent;
mod args;
mod context;
mod documents;
mod lab;
mod provenance;
mod replay_report;
mod schema;
mod show;
mod verbs;

use std::process::ExitCode;

use clap::Parser;
use eke_present::exit::{self, Status};

fn main() -> ExitCode {
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(e) => return usage(&e),
    };
    exit::end(verbs::run(args))
}

/// Prints clap's message; help and version are no failures.
fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    if error.use_stderr() { Status::Usage.code() } else { ExitCode::SUCCESS }
}
