//! The agent's socket, and starting and stopping the agent.

mod stop;

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use eke_linux::Root;
use eke_model::snapshot::{Request, Response, Snapshot};
use eke_present::exit::{Failure, Outcome, Status};
use eke_present::programs;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

pub use stop::{Hung, Stopped, stop};

const SOCKET: &str = "run/eke/agent.sock";
/// Root's own socket, where it does not queue behind other users. An older agent lacks it.
const SOCKET_OF_ROOT: &str = "run/eke/agent-root.sock";
/// The agent's program.
pub const PROGRAM: &str = "eke-agent";
const LOG: &str = "run/eke/agent.log";
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
const START_WITHIN: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// Asks the agent; `None` if no agent listens.
///
/// # Errors
/// The agent listens but does not answer, or refuses.
pub fn ask(root: &Root, request: &Request) -> Outcome<Option<Response>> {
    let Ok(stream) = connect(root) else { return Ok(None) };
    match exchange(&stream, request) {
        Ok(answer) => permitted(answer),
        Err(e) if is_dead(&e) => Ok(None),
        Err(e) => Err(Failure::new(
            Status::NoAgent,
            format!("the agent does not answer on {}: {e}", root.path(SOCKET).display()),
        )),
    }
}

fn connect(root: &Root) -> std::io::Result<UnixStream> {
    if rustix::process::geteuid().is_root() {
        if let Ok(stream) = connect_to(&root.path(SOCKET_OF_ROOT)) {
            return Ok(stream);
        }
    }
    connect_to(&root.path(SOCKET))
}

/// Waits for a place in the agent's queue, with a limit (`SO_SNDTIMEO` bounds connect(2), unix(7)).
fn connect_to(path: &Path) -> std::io::Result<UnixStream> {
    let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&stream, Timeout::Send, Some(ANSWER_WITHIN))?;
    rustix::net::connect(&stream, &SocketAddrUnix::new(path)?)?;
    Ok(stream.into())
}

fn permitted(answer: Response) -> Outcome<Option<Response>> {
    match answer {
        Response::Refused { reason, needs_root: true } => Err(Failure::new(Status::NotPermitted, reason)),
        Response::Refused { reason, needs_root: false } => Err(Failure::new(Status::Failed, reason)),
        other => Ok(Some(other)),
    }
}

/// True if it died between accept and answer.
fn is_dead(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

fn exchange(mut stream: &UnixStream, request: &Request) -> std::io::Result<Response> {
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.set_write_timeout(Some(ANSWER_WITHIN))?;
    let mut line = serde_json::to_string(request)?;
    line.push('\n');
    stream.write_all(line.as_bytes())?;
    let mut answer = String::new();
    if BufReader::new(stream).read_line(&mut answer)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_str(&answer)?)
}

/// The agent's snapshot; `None` if no agent listens.
///
/// # Errors
/// See [`ask`].
pub fn snapshot(root: &Root) -> Outcome<Option<Snapshot>> {
    Ok(match ask(root, &Request::Status)? {
        Some(Response::Status(snapshot)) => Some(*snapshot),
        _ => None,
    })
}

/// Starts the agent in a session of its own and waits until it answers.
///
/// # Errors
/// It cannot be started or does not answer; the error has its last log line.
pub fn start(root: &Root, config: Option<&str>) -> Outcome<u32> {
    let log_path = root.path(LOG);
    let log = OpenOptions::new().create(true).append(true).open(&log_path)?;
    let program = programs::beside(PROGRAM);
    let mut command = Command::new(&program);
    if let Some(file) = config {
        command.args(["--config", file]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    // A process group of its own: Ctrl-C in the terminal of `eke run` must not reach it.
    let child = command.process_group(0).spawn();
    let mut child = child
        .map_err(|e| Failure::new(Status::Failed, format!("cannot start {}: {e}", program.display())))?;
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
