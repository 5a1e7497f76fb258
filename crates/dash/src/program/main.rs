//! `eke-dash`: `eke dash` and `eke metrics --listen` execute it.
//!
//! # Layout
//! - [`page`]: the web page; [`source`]: its data
//! - [`metrics`]: the metrics over HTTP
//! - [`listening`]: what both share: signals and errors

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod listening;
mod metrics;
mod page;
mod source;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use eke_linux::Root;
use eke_present::exit::{self, Outcome};
use lexopt::prelude::{Long, Short, Value, ValueExt};

const USAGE: &str =
    "eke-dash serves the status of this machine over HTTP. `eke dash` and `eke metrics --listen` execute it.

    eke-dash page --listen ADDRESS:PORT [--history FILE]
    eke-dash metrics --listen ADDRESS:PORT

page       serves the web page, with a history of the last day.
metrics    serves the metrics at /metrics.";

struct Arguments {
    serves: Serves,
    listen: SocketAddr,
    history: Option<PathBuf>,
    root: Root,
}

#[derive(Clone, Copy)]
enum Serves {
    Page,
    Metrics,
}

fn main() -> ExitCode {
    exit::main("eke-dash", USAGE, arguments(lexopt::Parser::from_env()), |a| run(&a))
}

fn run(arguments: &Arguments) -> Outcome {
    match arguments.serves {
        Serves::Page => page::run(&arguments.root, arguments.listen, arguments.history.as_deref()),
        Serves::Metrics => metrics::run(&arguments.root, arguments.listen),
    }
}

/// `None` if the user requested the help.
fn arguments(mut parser: lexopt::Parser) -> Result<Option<Arguments>, lexopt::Error> {
    let (mut serves, mut listen, mut history, mut root) = (None, None, None, Root::host());
    while let Some(argument) = parser.next()? {
        match argument {
            Long("listen") => listen = Some(parser.value()?.parse()?),
            Long("history") => history = Some(parser.value()?.into()),
            // for tests: the directory that stands for /
            Long("root") => root = Root::at(PathBuf::from(parser.value()?)),
            Short('h') | Long("help") => return Ok(None),
            Value(verb) if serves.is_none() => serves = Some(which(&verb.string()?)?),
            other => return Err(other.unexpected()),
        }
    }
    let serves = serves.ok_or("a verb is missing: page or metrics")?;
    let listen = listen.ok_or("--listen is missing")?;
    Ok(Some(Arguments { serves, listen, history, root }))
}

fn which(verb: &str) -> Result<Serves, lexopt::Error> {
    match verb {
        "page" => Ok(Serves::Page),
        "metrics" => Ok(Serves::Metrics),
        other => Err(format!("\"{other}\" is not a verb: page or metrics").into()),
    }
}
