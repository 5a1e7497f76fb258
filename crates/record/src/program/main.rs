//! `eke-record`: `eke record` and `eke report` execute it.
//!
//! # Layout
//! - [`arguments`]: the options, as `eke` passes them
//! - [`record`]: records, and marks steps; [`report`]: a recording as a page, as SVG, as CSV

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod arguments;
mod record;
mod report;

use std::process::ExitCode;

use arguments::{Arguments, USAGE, Verb};
use eke_present::exit::{self, Failure, Outcome, Status};
use eke_record::Error;

fn main() -> ExitCode {
    exit::main("eke-record", USAGE, arguments::parse(lexopt::Parser::from_env()), run)
}

fn run(arguments: Arguments) -> Outcome {
    let Arguments { root, json, verb } = arguments;
    match verb {
        Verb::Record(options) => record::run(&root, json, options),
        Verb::Mark(name) => record::mark(&name),
        Verb::Report(options) => report::run(json, &options),
    }
}

/// With its exit status.
fn failure(error: eke_record::Error) -> Failure {
    let status = match &error {
        e if e.start_status().is_some() => e.start_status().map_or(Status::Failed, Status::Of),
        Error::Output(e) => e.status(),
        Error::BadName | Error::Several(_) => Status::Usage,
        Error::Kernel(e) if e.is_permission() => Status::NotPermitted,
        Error::File { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            Status::NotPermitted
        }
        _ => Status::Failed,
    };
    Failure::new(status, error.to_string())
}
