//! Starting and stopping the agent.

mod outdated;
mod stop;

use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
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
const PAUSE: Duration = Duration::from_millis(20);

/// Starts the agent in a process group of its own and waits until it answers.
///
/// # Errors
/// It cannot be started or does not answer; the error has its last log line.
pub fn start(root: &Root, config: Option<&str>) -> Outcome<u32> {
    let log_path = root.path(LOG);
    // Root's alone: it names programs of users that the guard slows.
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(&log_path)?;
    log.set_permissions(Permissions::from_mode(0o600))?;
    let program = programs::beside(PROGRAM);
    let mut command = Command::new(&program);
    if let Some(file) = config {
        command.args(["--config", file]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    inherited::keep_from_children();
    // A process group of its own: Ctrl-C in the terminal of `eke run` must not reach it.
    let child = command.process_group(0).spawn();
    let mut child = child.map_err(|e| {
        let lacks = if program.exists() { "; it needs /dev/null, too" } else { "" };
        Failure::new(Status::Failed, format!("cannot start {}: {e}{lacks}", program.display()))
    })?;
    let until = Instant::now() + START_WITHIN;
    while Instant::now() < until {
        if let Some(snapshot) = snapshot(root)? {
            return Ok(snapshot.agent.map_or(0, |a| a.pid));
        }
        if let Some(status) = child.try_wait()? {
            return Err(Failure::new(
                Status::Failed,
                format!("the agent ended at once ({status}); its last message: {}", last_words(root)),
            ));
        }
        std::thread::sleep(PAUSE);
    }
    Err(Failure::new(
        Status::NoAgent,
        format!("the agent did not answer within {} s; see {}", START_WITHIN.as_secs(), log_path.display()),
    ))
}

fn last_words(root: &Root) -> String {
    let log = root.read(LOG).unwrap_or_default();
    log.lines().next_back().unwrap_or("nothing").to_owned()
}
