//! `eke`: the verbs. No privileges of its own; what changes the machine is in `eke-kernel`.
//!
//! # Layout
//! - [`args`]: every verb and option; help, completions and the man page come from it
//! - [`documents`]: what `--json` prints
//! - [`verbs`]: one file for each verb
//! - [`show`]: figures and plans as text
//! - [`border`]: where text leaves for the terminal
//! - [`agent`]: the agent's socket, and starting and stopping the agent
//! - [`exit`]: what a failure is called and which status it ends with

// What is printed is printed through `border`.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod agent;
mod args;
mod border;
mod documents;
mod exit;
mod schema;
mod show;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

/// Prints a line.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::border::out(format_args!("{}\n", format_args!($($text)*))) };
    () => { say!("") };
}

/// The same without the end of the line.
#[macro_export]
macro_rules! put {
    ($($text:tt)*) => { $crate::border::out(format_args!($($text)*)) };
}

/// Prints a line to standard error.
#[macro_export]
macro_rules! warn {
    ($($text:tt)*) => { $crate::border::error(format_args!($($text)*)) };
}

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
