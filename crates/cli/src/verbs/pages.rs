//! `eke completions` and `eke man`: from the same definitions as the help.

use std::path::Path;

use clap::CommandFactory;
use eke_present::exit::{Outcome, Status};
use eke_present::{manual, put};

use crate::args::Args;

/// Completions for `shell` on standard output.
pub fn completions(shell: clap_complete::Shell) -> Outcome {
    // Into memory first: it panics if the reader of standard output is gone.
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "eke", &mut out);
    put!("{}", String::from_utf8_lossy(&out));
    Ok(Status::Done)
}

/// The page of eke or of one verb on standard output, or all pages as files in a directory.
pub fn man(verb: &[String], directory: Option<&Path>) -> Outcome {
    manual::run(Args::command(), verb, directory)
}
