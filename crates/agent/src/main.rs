//! `eke-agent [--up] [--config FILE]`: arguments, log and signals for [`eke_agent::run`].

use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use eke_agent::child_service::{ChildService, ChildServices};
use eke_agent::clock::SystemClock;
use eke_agent::protect::Start;
use eke_agent::training::Training;
use eke_agent::{Ended, Error, Result, lock, protect, run, socket};
use eke_apply::end;
use eke_apply::log::Log;
use eke_linux::{Root, settings};
use eke_model::text::{harmless, words};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

const USAGE: &str = "eke-agent maintains what `eke up` applied and answers on /run/eke/agent.sock.\n\
    Usage: eke-agent [--up] [--config FILE]\n\
    With --up it first applies the stored plan (`eke up --boot`), as at boot.\n\
    SIGTERM ends it and leaves everything in place; `eke down` reverts everything.";

struct Arguments {
    root: Root,
    config: Option<String>,
    up: bool,
}

/// The exit status of `eke up` if it is done in part: `eke status` shows what is missing.
const IN_PART: i32 = 5;

/// The log of this process.
static LOG: Log = Log::new();

fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(|| &LOG).with_ansi(false).without_time().with_target(false).init();
    let arguments = match words(std::env::args_os().skip(1)).and_then(|words| arguments(words.into_iter())) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            let printed = writeln!(std::io::stdout(), "{USAGE}");
            return if printed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        Err(wrong) => {
            let _ = writeln!(std::io::stderr(), "eke-agent: {}\n{USAGE}", harmless(&wrong));
            return ExitCode::from(2);
        }
    };
    let start = Start::of_this_process();
    protect::lift_limits(start);
    if let Some(status) = arguments.up.then(|| up(&arguments)).flatten() {
        return status;
    }
    match serve(&arguments, start) {
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
    let mut arguments = Arguments { root: Root::host(), config: None, up: false };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--root" => arguments.root = Root::at(value()?),
            "--config" => arguments.config = Some(value()?),
            "--up" => arguments.up = true,
            "-h" | "--help" => return Ok(None),
            _ => return Err(format!("\"{word}\" is not an option")),
        }
    }
    Ok(Some(arguments))
}

/// Applies the stored plan in a child. `Some` is the exit status of this process, because without a plan there is nothing to maintain.
fn up(arguments: &Arguments) -> Option<ExitCode> {
    let Some(program) = beside("eke") else { return Some(ExitCode::FAILURE) };
    let mut command = Command::new(&program);
    command.args(["up", "--boot", "--agent", "none"]).stdin(Stdio::null());
    command.args(arguments.config.iter().flat_map(|file| ["--config", file]));
    if !arguments.root.is_host() {
        command.arg("--root").arg(arguments.root.path(""));
    }
    let why = match command.status() {
        Ok(status) if matches!(status.code(), Some(0 | IN_PART)) => return None,
        Ok(status) => status.to_string(),
        Err(e) => e.to_string(),
    };
    tracing::error!("{} up --boot failed: {why}", program.display());
    Some(ExitCode::FAILURE)
}

/// A program in the same directory as this one.
fn beside(name: &str) -> Option<PathBuf> {
    Some(std::env::current_exe().ok()?.parent()?.join(name))
}

fn serve(arguments: &Arguments, start: Start) -> Result<Ended> {
    let root = &arguments.root;
    let shutdown = end::signals(&[SIGTERM, SIGINT, SIGHUP]).map_err(Error::Wait)?;
    // As a service it replaces an agent that somebody started by `eke up`.
    let take = if arguments.up { lock::take_over } else { lock::take };
    let _lock = take(root, std::process::id())?;
    // The end of the process closes them: what waits there of users cannot delay that.
    let listeners = ManuallyDrop::new(socket::listen(root)?);
    protect::this_process(root, start);
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
        training: training(arguments),
    }
}

/// A child that this process supervises.
fn child(arguments: &Arguments, name: &str, verb: &str) -> ChildService {
    let Some(program) = beside(name) else { return ChildService::none() };
    ChildService::of(program, command_line(arguments, &[verb, "--end-with", &std::process::id().to_string()]))
}

/// By `eke`, which can measure: this program's code is locked in memory.
fn training(arguments: &Arguments) -> Training {
    let words = command_line(arguments, &["lab", "retrain", "--end-with", &std::process::id().to_string()]);
    beside("eke").map_or_else(Training::default, |program| Training::of(program, words))
}

/// The words of a child's command line: these, and this process' own options.
fn command_line(arguments: &Arguments, first: &[&str]) -> Vec<String> {
    let mut words: Vec<String> = first.iter().map(|word| (*word).to_owned()).collect();
    words.extend(arguments.config.iter().flat_map(|file| ["--config".to_owned(), file.clone()]));
    if !arguments.root.is_host() {
        words.extend(["--root".to_owned(), arguments.root.path("").display().to_string()]);
    }
    words
}

fn farewell(ended: Ended) -> &'static str {
    match ended {
        Ended::BySignal => "A signal ends the agent; everything that is applied stays in place.",
        Ended::ByRequest => "The agent was asked to stop; everything that is applied stays in place.",
    }
}
