//! `eke-prefetch`: started by `eke-agent`, or by hand for testing.

use std::io::Write;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;

use eke_apply::end;
use eke_apply::log::Log;
use eke_linux::{Root, settings};
use eke_model::text::harmless;
use eke_prefetchd::live::{Error, Notice, Options, SystemClock, ahead_once, run};
use eke_prefetchd::trace::Tracer;
use lexopt::prelude::{Long, Short, Value, ValueExt};
use signal_hook::consts::{SIGINT, SIGTERM};

const USAGE: &str =
    "eke-prefetch learns what programs read when they start, and reads it before their next start.

    eke-prefetch run [--config FILE] [--store DIR] [--no-ahead] [--no-exec] [--now-only] [--end-with PID]
    eke-prefetch ahead [--config FILE] [--store DIR] PROGRAM...
    eke-prefetch source

run       runs until SIGTERM and prints its events as lines of JSON. `eke up` makes the agent start it.
ahead     reads the files of these programs now. `eke prefetch list` shows their paths.
source    prints how launches are traced on this machine, and why not by a better method.

--store DIR      uses this directory instead of /var/lib/eke
--no-ahead       reads nothing before a program starts
--no-exec        reads nothing when a program starts
--now-only       publishes no state for `eke status`
--end-with PID   ends when this process, its parent, ends";

#[derive(Default)]
struct Arguments {
    verb: String,
    config: Option<String>,
    store: Option<PathBuf>,
    no_ahead: bool,
    no_exec: bool,
    now_only: bool,
    end_with: Option<String>,
    programs: Vec<String>,
}

fn main() -> ExitCode {
    let arguments = match arguments(lexopt::Parser::from_env()) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(wrong) => {
            eprintln!("eke-prefetch: {}\n\n{USAGE}", harmless(&wrong.to_string()));
            return ExitCode::from(2);
        }
    };
    match act(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, why)) => {
            eprintln!("eke-prefetch: {}", harmless(&why));
            ExitCode::from(code)
        }
    }
}

/// `None` if the user requested the help.
fn arguments(mut parser: lexopt::Parser) -> Result<Option<Arguments>, lexopt::Error> {
    let mut all = Arguments::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("config") => all.config = Some(parser.value()?.string()?),
            Long("store") => all.store = Some(parser.value()?.into()),
            Long("no-ahead") => all.no_ahead = true,
            Long("no-exec") => all.no_exec = true,
            Long("now-only") => all.now_only = true,
            Long("end-with") => all.end_with = Some(parser.value()?.string()?),
            Short('h') | Long("help") => return Ok(None),
            Value(verb) if all.verb.is_empty() => all.verb = verb.string()?,
            Value(program) if all.verb == "ahead" => all.programs.push(program.string()?),
            other => return Err(other.unexpected()),
        }
    }
    match all.verb.as_str() {
        "ahead" if all.programs.is_empty() => Err("ahead needs a program".into()),
        "run" | "ahead" | "source" => Ok(Some(all)),
        "" => Err("a verb is missing: run, ahead or source".into()),
        other => Err(format!("\"{other}\" is not a verb: run, ahead or source").into()),
    }
}

fn act(arguments: &Arguments) -> Result<(), (u8, String)> {
    if !rustix::process::geteuid().is_root() {
        return Err((4, "only root may see what programs read: use sudo".to_owned()));
    }
    let root = Root::host();
    if arguments.verb == "source" {
        println!("{}", Tracer::start(&root).source());
        return Ok(());
    }
    let shutdown = end::signals(&[SIGTERM, SIGINT]).map_err(|e| (1, format!("cannot take signals: {e}")))?;
    if let Some(parent) = &arguments.end_with {
        end::with_parent(&root, parent).map_err(|why| (1, why))?;
    }
    let settings = settings::load(&root, arguments.config.as_deref()).map_err(|e| (2, e.to_string()))?;
    let mut options =
        Options::new(arguments.store.clone().unwrap_or_else(|| root.path(Options::STORE)), settings.prefetch);
    options.settings.ahead &= !arguments.no_ahead;
    options.settings.at_exec &= !arguments.no_exec;
    options.publishes_state = !arguments.now_only;
    let log = Log::new();
    let done = match arguments.verb.as_str() {
        "ahead" => {
            ahead_once(&root, &options, &arguments.programs, &SystemClock, shutdown.as_fd(), &mut |notice| {
                notify(&log, notice)
            })
        }
        _ => run(&root, &options, &SystemClock, shutdown.as_fd(), &mut |notice| notify(&log, notice)),
    };
    done.map_err(|e| (if matches!(e, Error::Unknown(_)) { 2 } else { 1 }, e.to_string()))
}

/// A reader of standard output that goes away does not end the process.
fn notify(log: &Log, notice: Notice) {
    if let Notice::Trouble { what } = &notice {
        log.write_line(&format!("eke-prefetch: {what}"));
    }
    if let Ok(line) = serde_json::to_string(&notice) {
        let _ = writeln!(std::io::stdout(), "{}", harmless(&line));
    }
}
