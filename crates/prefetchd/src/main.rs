//! `eke-prefetch`: started by `eke-agent`, or by hand to look at what it does.

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
use signal_hook::consts::{SIGINT, SIGTERM};

const USAGE: &str = "eke-prefetch learns what programs read at their start, and reads it before.

    eke-prefetch run [--config FILE] [--store DIR] [--no-ahead] [--no-exec] [--now-only] [--end-with PID]
    eke-prefetch ahead [--config FILE] [--store DIR] PROGRAM...
    eke-prefetch source

run: until SIGTERM; a line of JSON for each thing worth one. `eke up` has the agent start it. --store: instead of /var/lib/eke;
--now-only: without telling the agent's status; --end-with: SIGTERM when this process, its parent, ends. ahead: reads the files of these programs (paths as `eke prefetch list` shows
them) now. source: how launches are seen here, and why not better.";

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
    let arguments = match arguments(std::env::args().skip(1)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(wrong) => {
            eprintln!("eke-prefetch: {}\n\n{USAGE}", harmless(&wrong));
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

/// `None`: help was asked for.
fn arguments(mut words: impl Iterator<Item = String>) -> Result<Option<Arguments>, String> {
    let mut arguments = Arguments { verb: words.next().unwrap_or_default(), ..Arguments::default() };
    match arguments.verb.as_str() {
        "run" | "ahead" | "source" => {}
        "-h" | "--help" => return Ok(None),
        other => return Err(format!("\"{other}\" is none of run, ahead and source")),
    }
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--config" => arguments.config = Some(value()?),
            "--store" => arguments.store = Some(value()?.into()),
            "--no-ahead" => arguments.no_ahead = true,
            "--no-exec" => arguments.no_exec = true,
            "--now-only" => arguments.now_only = true,
            "--end-with" => arguments.end_with = Some(value()?),
            "-h" | "--help" => return Ok(None),
            _ if arguments.verb == "ahead" && !word.starts_with("--") => arguments.programs.push(word),
            _ => return Err(format!("\"{word}\" is not an option")),
        }
    }
    if arguments.verb == "ahead" && arguments.programs.is_empty() {
        return Err("which programs?".to_owned());
    }
    Ok(Some(arguments))
}

fn act(arguments: &Arguments) -> Result<(), (u8, String)> {
    if !rustix::process::geteuid().is_root() {
        return Err((4, "only root may see what programs read; `sudo eke-prefetch` does".to_owned()));
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

/// A reader that went away is no reason to end.
fn notify(log: &Log, notice: Notice) {
    if let Notice::Trouble { what } = &notice {
        log.say(&format!("eke-prefetch: {what}"));
    }
    if let Ok(line) = serde_json::to_string(&notice) {
        let _ = writeln!(std::io::stdout(), "{}", harmless(&line));
    }
}
