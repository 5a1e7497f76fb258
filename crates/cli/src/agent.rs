//! Starting and stopping the agent.

mod outdated;
mod stop;
mod systemd;

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use eke_client::agent::snapshot;
use eke_linux::{Root, inherited};
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::programs;

pub use outdated::{is_outdated, replace};
pub use stop::{Hung, Stopped, stop, stop_service};

/// The agent's program.
pub const PROGRAM: &str = "eke-agent";
const LOG: &str = "run/eke/agent.log";
const START_WITHIN: Duration = Duration::from_secs(5);
/// As a service it first adopts what is applied (`eke up --boot`).
const SERVICE_WITHIN: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

/// Starts the agent as a service if systemd runs, otherwise in a process group of its own, and waits until it answers.
///
/// # Errors
/// It cannot be started or does not answer; the error has its last log line.
pub fn start(root: &Root, config: Option<&str>) -> Outcome<u32> {
    let log_path = root.path(LOG);
    // Root's alone: it names the programs of users that the guard slows, stops and ends.
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(&log_path)?;
    log.set_permissions(Permissions::from_mode(0o600))?;
    let program = programs::beside(PROGRAM);
    if let Some(log) = systemd::start(root, &program, config, &log_path) {
        return answer(root, SERVICE_WITHIN, &log, || Ok(None));
    }
    let mut child = spawn(&program, config, log)?;
    answer(root, START_WITHIN, &log_path.display().to_string(), || child.try_wait())
}

fn spawn(program: &Path, config: Option<&str>, log: File) -> Outcome<Child> {
    let mut command = Command::new(program);
    if let Some(file) = config {
        command.args(["--config", file]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    inherited::keep_from_children();
    // A process group of its own: Ctrl-C in the terminal of `eke run` must not reach it.
    command.process_group(0).spawn().map_err(|e| {
        let lacks = if program.exists() { "; it needs /dev/null, too" } else { "" };
        Failure::new(Status::Failed, format!("cannot start {}: {e}{lacks}", program.display()))
    })
}

/// The process that answers.
///
/// # Errors
/// None does in time, with `log` as the place to look, or `end` says that it ended.
fn answer(
    root: &Root,
    time: Duration,
    log: &str,
    mut end: impl FnMut() -> io::Result<Option<ExitStatus>>,
) -> Outcome<u32> {
    let until = Instant::now() + time;
    while Instant::now() < until {
        if let Some(snapshot) = snapshot(root)? {
            return Ok(snapshot.agent.map_or(0, |a| a.pid));
        }
        if let Some(status) = end()? {
            return Err(Failure::new(
                Status::Failed,
                format!("the agent ended at once ({status}); its last message: {}", last_words(root)),
            ));
        }
        std::thread::sleep(PAUSE);
    }
    Err(Failure::new(
        Status::NoAgent,
        format!("the agent did not answer within {} s; see {log}", time.as_secs()),
    ))
}

fn within(time: Duration, mut done: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + time;
    while !done() {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
    true
}

fn last_words(root: &Root) -> String {
    let log = root.read(LOG).unwrap_or_default();
    log.lines().next_back().unwrap_or("nothing").to_owned()
}
