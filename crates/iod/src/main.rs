//! `eke-io`: `eke io` starts it to measure, `eke-agent` to govern, or a person by hand.

use std::io::{BufRead, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use eke_apply::end;
use eke_apply::log::Log;
use eke_io::sensor::{Attribution, SensorOptions, WindowSource, devices};
use eke_iod::govern::{self, Event, Options};
use eke_iod::{cost, sensor};
use eke_linux::{Root, settings};
use eke_model::text::harmless;
use lexopt::Parser;
use lexopt::prelude::{Long, Short, Value, ValueExt};
use signal_hook::consts::{SIGINT, SIGTERM};

const USAGE: &str = "eke-io measures disk latencies by class, and throttles writers when reads starve.

    eke-io sense [--by process|cgroup] [--no-bpf]
    eke-io cost SECONDS
    eke-io govern [--device DISK] [--config FILE] [--now-only] [--end-with PID] [--no-bpf]
    eke-io source

sense: prints a line of JSON for each line on standard input: the window since the line before. Ends with its input.
cost: prints a line of JSON: the CPU time of measuring while other programs use the disks.
govern: prints a line of JSON for each change. SIGTERM ends it and restores every setting. `eke up --govern-io` has the agent start it.
source: prints whether it measures by BPF on this machine, and if not, why.
--now-only: does not report to the agent.";

#[derive(Default)]
struct Arguments {
    verb: String,
    sensor: SensorOptions,
    device: Option<String>,
    config: Option<String>,
    now_only: bool,
    seconds: u64,
    end_with: Option<String>,
    root: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = match arguments(Parser::from_env()) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            let printed = writeln!(std::io::stdout(), "{USAGE}");
            return if printed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        Err(wrong) => {
            let _ = writeln!(std::io::stderr(), "eke-io: {}\n\n{USAGE}", harmless(&wrong.to_string()));
            return ExitCode::from(2);
        }
    };
    match act(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, why)) => {
            let _ = writeln!(std::io::stderr(), "eke-io: {}", harmless(&why));
            ExitCode::from(code)
        }
    }
}

/// `None`: help is requested.
fn arguments(mut parser: Parser) -> Result<Option<Arguments>, lexopt::Error> {
    let mut arguments = Arguments::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("no-bpf") => arguments.sensor.no_bpf = true,
            Long("by") => arguments.sensor.attribution = parser.value()?.parse_with(attribution)?,
            Long("device") => arguments.device = Some(parser.value()?.string()?),
            // for tests: the directory that stands for /
            Long("root") => arguments.root = Some(parser.value()?.into()),
            Long("config") => arguments.config = Some(parser.value()?.string()?),
            Long("now-only") => arguments.now_only = true,
            Long("end-with") => arguments.end_with = Some(parser.value()?.string()?),
            Short('h') | Long("help") => return Ok(None),
            Value(verb) if arguments.verb.is_empty() => arguments.verb = verb.string()?,
            Value(seconds) if arguments.verb == "cost" => arguments.seconds = seconds.parse()?,
            other => return Err(other.unexpected()),
        }
    }
    match arguments.verb.as_str() {
        "sense" | "govern" | "cost" | "source" => Ok(Some(arguments)),
        other => Err(format!("\"{other}\" is none of sense, cost, govern and source").into()),
    }
}

fn attribution(word: &str) -> Result<Attribution, &'static str> {
    match word {
        "process" => Ok(Attribution::Process),
        "cgroup" => Ok(Attribution::Cgroup),
        _ => Err("it is neither process nor cgroup"),
    }
}

fn act(arguments: &Arguments) -> Result<(), (u8, String)> {
    let root = arguments.root.clone().map_or_else(Root::host, Root::at);
    match arguments.verb.as_str() {
        "govern" => govern(&root, arguments),
        "source" => print_line(&sensor::source(&root).to_string()),
        "cost" => print_cost(&root, arguments.seconds.clamp(1, 3_600)),
        _ => sense(&root, arguments.sensor).map_err(|why| (1, why)),
    }
}

fn print_cost(root: &Root, seconds: u64) -> Result<(), (u8, String)> {
    let cost = cost::measure(root, Duration::from_secs(seconds)).map_err(|e| (1, e.to_string()))?;
    print_line(&serde_json::to_string(&cost).map_err(|e| (1, e.to_string()))?)
}

fn print_line(line: &str) -> Result<(), (u8, String)> {
    writeln!(std::io::stdout(), "{line}").map_err(|e| (1, format!("standard output cannot be written: {e}")))
}

fn govern(root: &Root, arguments: &Arguments) -> Result<(), (u8, String)> {
    if !rustix::process::geteuid().is_root() {
        return Err((4, "only root may change settings of disks; run `sudo eke-io govern`".to_owned()));
    }
    let shutdown = end::signals(&[SIGTERM, SIGINT]).map_err(|e| (1, format!("cannot take signals: {e}")))?;
    if let Some(parent) = &arguments.end_with {
        end::with_parent(root, parent).map_err(|why| (1, why))?;
    }
    let settings = settings::load(root, arguments.config.as_deref()).map_err(|e| (2, e.to_string()))?;
    let only = arguments
        .device
        .as_deref()
        .map(|text| devices::named(root, text))
        .transpose()
        .map_err(|why| (2, why))?;
    let options = Options {
        settings: settings.io,
        only,
        every: Duration::from_secs(1),
        reports_to_agent: !arguments.now_only,
    };
    let measured = SensorOptions { no_pools: true, ..arguments.sensor };
    let mut sensor = sensor::start(root, measured).map_err(|e| (1, e.to_string()))?;
    let log = Log::new();
    govern::run(root, &options, &mut sensor, shutdown.as_fd(), &mut |event| print(&log, event))
        .map_err(|e| (1, e.to_string()))
}

/// Goes on when the reader of standard output has gone away.
fn print(log: &Log, event: Event) {
    if let Event::Trouble { what } = &event {
        log.write_line(&format!("eke-io: {what}"));
    }
    if let Ok(line) = serde_json::to_string(&event) {
        let _ = writeln!(std::io::stdout(), "{}", harmless(&line));
    }
}

fn sense(root: &Root, options: SensorOptions) -> Result<(), String> {
    let mut sensor = sensor::start(root, options).map_err(|e| e.to_string())?;
    for line in std::io::stdin().lock().lines() {
        line.map_err(|e| format!("cannot read standard input: {e}"))?;
        let window = sensor.window().map_err(|e| e.to_string())?;
        let text = serde_json::to_string(&window).map_err(|e| e.to_string())?;
        // a reader that went away is no error
        if writeln!(std::io::stdout(), "{}", harmless(&text)).is_err() {
            return Ok(());
        }
    }
    Ok(())
}
