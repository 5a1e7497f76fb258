//! `eke`: the verbs. No privileges of its own; what changes the machine is in `eke-kernel`.
//!
//! # Layout
//! - [`args`]: every verb and option; help, completions and the man page come from it
//! - [`documents`]: what `--json` prints
//! - [`verbs`]: one file for each verb
//! - [`show`]: figures and plans as text
//! - [`agent`]: the agent's socket, and starting and stopping the agent
//! - [`exit`]: what a failure is called and which status it ends with

mod agent;
mod args;
mod documents;
mod exit;
mod schema;
mod show;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(e) => return exit::usage(&e),
    };
    match verbs::run(args) {
        Ok(done) => done.code(),
        Err(failure) => failure.report(),
    }
}
