//! `eke-ltsp`: `eke ltsp` executes it.
//!
//! # Layout
//! - [`arguments`]: the options, as `eke` passes them
//! - [`server`]: what this server's files say
//! - [`boot`]: plan, install and uninstall; [`clients`]: status and targets

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod arguments;
mod boot;
mod clients;
mod server;

use std::process::ExitCode;

use arguments::{Arguments, USAGE, Verb};
use eke_present::exit::{self, Outcome};

fn main() -> ExitCode {
    exit::main("eke-ltsp", USAGE, arguments::parse(lexopt::Parser::from_env()), |a| run(&a))
}

fn run(arguments: &Arguments) -> Outcome {
    let Arguments { root, json, verb } = arguments;
    match verb {
        Verb::Plan => boot::plan(root, *json),
        Verb::Install => boot::install(root, *json),
        Verb::Uninstall => boot::uninstall(root, *json),
        Verb::Status(words) => clients::status(root, *json, words),
        Verb::Addresses => clients::addresses(root),
        Verb::Targets { output, clients } => clients::targets(root, output.as_deref(), clients),
    }
}
