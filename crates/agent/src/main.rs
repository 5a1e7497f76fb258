//! `eke-agent [--config FILE]`: arguments, log and signals for [`eke_agent::run`].

use std::os::fd::AsFd;
use std::process::ExitCode;

use eke_agent::child_service::{ChildService, ChildServices};
use eke_agent::clock::SystemClock;
use eke_agent::{Ended, Error, Result, lock, protect, run, socket};
use eke_apply::end;
use eke_apply::log::Log;
use eke_linux::{Root, settings};
use signal_hook::consts::{SIGINT, SIGTERM};

const USAGE: &str = "eke-agent maintains what `eke up` applied and answers on /run/eke/agent.sock.\n\
    Usage: eke-agent [--config FILE]\n\
    SIGTERM ends it and leaves everything in place; `eke down` reverts everything.";

struct Arguments {
    root: Root,
    config: Option<String>,
}

/// The log of this process.
static LOG: Log = Log::new();

fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(|| &LOG).with_ansi(false).without_time().with_target(false).init();
    let arguments = match arguments(std::env::args().skip(1)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(wrong) => {
            eprintln!("eke-agent: {wrong}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match serve(&arguments) {
        Ok(ended) => {
            tracing::info!("{}", farewell(ended));
            ExitCode::SUCCESS
        }
        Err(e) => {
            tracing::error!("{e}");
            ExitCode::from(if matches!(e, Error::Settings(_)) { 2 } else { 1 })
        }
    }
}

/// Parses the arguments; `None` if help was requested. `--root` is for tests: a directory that replaces `/`.
fn arguments(mut words: impl Iterator<Item = String>) -> Result<Option<Arguments>, String> {
    let mut arguments = Arguments { root: Root::host(), config: None };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--root" => arguments.root = Root::at(value()?),
            "--config" => arguments.config = Some(value()?),
            "-h" | "--help" => return Ok(None),
            _ => return Err(format!("\"{word}\" is not an option")),
        }
    }
    Ok(Some(arguments))
}

fn serve(arguments: &Arguments) -> Result<Ended> {
    let root = &arguments.root;
    let shutdown = end::signals(&[SIGTERM, SIGINT]).map_err(Error::Wait)?;
    let _lock = lock::take(root, std::process::id())?;
    let listeners = socket::listen(root)?;
    protect::this_process(root);
    let load = || settings::load(root, arguments.config.as_deref());
    let ended = run(root, &listeners, &SystemClock, shutdown.as_fd(), &load, children(arguments));
    socket::remove(root)?;
    ended
}

fn children(arguments: &Arguments) -> ChildServices {
    // A directory that replaces `/` has no launches; its disks are those it lists.
    let is_host = arguments.root.is_host();
    let prefetch = is_host.then(|| child(arguments, "eke-prefetch", "run"));
    ChildServices {
        prefetch: prefetch.unwrap_or_else(ChildService::none),
        io: child(arguments, "eke-io", "govern"),
    }
}

/// A program in the same directory as this one.
fn child(arguments: &Arguments, name: &str, verb: &str) -> ChildService {
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join(name)));
    let Some(program) = beside else { return ChildService::none() };
    let mut words = vec![verb.to_owned(), "--end-with".to_owned(), std::process::id().to_string()];
    words.extend(arguments.config.iter().flat_map(|file| ["--config".to_owned(), file.clone()]));
    if !arguments.root.is_host() {
        words.extend(["--root".to_owned(), arguments.root.path("").display().to_string()]);
    }
    ChildService::of(program, words)
}

fn farewell(ended: Ended) -> &'static str {
    match ended {
        Ended::BySignal => "A signal ends the agent; everything that is applied stays in place.",
        Ended::ByRequest => "The agent was asked to stop; everything that is applied stays in place.",
    }
}
