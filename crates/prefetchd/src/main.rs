//! `eke-prefetch`: started by `eke-agent`, executed by `eke prefetch`, or by hand for testing.

mod arguments;

use std::io::Write;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arguments::{Arguments, USAGE, Verb};
use eke_apply::end;
use eke_apply::log::Log;
use eke_linux::{Root, settings};
use eke_model::text::harmless;
use eke_prefetch_learned as learned;
use eke_prefetchd::file::descriptors;
use eke_prefetchd::live::{Error, Notice, Options, SystemClock, ahead_once, run};
use eke_prefetchd::trace::Tracer;
use signal_hook::consts::{SIGINT, SIGTERM};

fn main() -> ExitCode {
    let arguments = match arguments::parse(lexopt::Parser::from_env()) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            let printed = writeln!(std::io::stdout(), "{USAGE}");
            return if printed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        Err(wrong) => {
            let _ = writeln!(std::io::stderr(), "eke-prefetch: {}\n\n{USAGE}", harmless(&wrong.to_string()));
            return ExitCode::from(2);
        }
    };
    if let Verb::Learned(verb) = &arguments.verb {
        return learned(&arguments, verb);
    }
    match act(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, why)) => {
            let _ = writeln!(std::io::stderr(), "eke-prefetch: {}", harmless(&why));
            ExitCode::from(code)
        }
    }
}

fn learned(arguments: &Arguments, verb: &learned::Verb) -> ExitCode {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let now_s = i64::try_from(now_s).unwrap_or(i64::MAX);
    match learned::run(verb, &Root::host(), store(arguments), now_s, arguments.json) {
        Ok(done) => done.code(),
        Err(failure) => failure.report(),
    }
}

fn store(arguments: &Arguments) -> PathBuf {
    arguments.store.clone().unwrap_or_else(|| Root::host().path(Options::STORE))
}

fn act(arguments: &Arguments) -> Result<(), (u8, String)> {
    if !rustix::process::geteuid().is_root() {
        return Err((4, "only root may see what programs read: use sudo".to_owned()));
    }
    descriptors::raise();
    let root = Root::host();
    if matches!(arguments.verb, Verb::Source) {
        let tracer = Tracer::start(&root);
        return writeln!(std::io::stdout(), "{}", tracer.source())
            .map_err(|e| (1, format!("standard output cannot be written: {e}")));
    }
    let shutdown = end::signals(&[SIGTERM, SIGINT]).map_err(|e| (1, format!("cannot take signals: {e}")))?;
    if let Some(parent) = &arguments.end_with {
        end::with_parent(&root, parent).map_err(|why| (1, why))?;
    }
    let settings = settings::load(&root, arguments.config.as_deref()).map_err(|e| (2, e.to_string()))?;
    let mut options = Options::new(store(arguments), settings.prefetch);
    options.settings.ahead &= !arguments.no_ahead;
    options.settings.at_exec &= !arguments.no_exec;
    options.publishes_state = !arguments.now_only;
    if arguments.now_only {
        options.repeated_within = Duration::ZERO;
    }
    let log = Log::new();
    let done = match &arguments.verb {
        Verb::Ahead(programs) => {
            ahead_once(&root, &options, programs, &SystemClock, shutdown.as_fd(), &mut |notice| {
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
