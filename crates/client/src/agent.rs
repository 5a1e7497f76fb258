//! Requests on the agent's socket.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use eke_linux::Root;
use eke_model::snapshot::{Request, Response, Snapshot};
use eke_present::exit::{Failure, Outcome, Status};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

/// The agent's socket.
pub const SOCKET: &str = "run/eke/agent.sock";
/// Root's own socket, where it does not queue behind other users. An older agent lacks it.
const SOCKET_OF_ROOT: &str = "run/eke/agent-root.sock";
/// The time for an answer.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Asks the agent; `None` if no agent listens.
///
/// # Errors
/// The agent listens but does not answer, or refuses.
pub fn ask(root: &Root, request: &Request) -> Outcome<Option<Response>> {
    ask_within(root, request, ANSWER_WITHIN)
}

fn ask_within(root: &Root, request: &Request, within: Duration) -> Outcome<Option<Response>> {
    let stream = match connect_within(root, within) {
        Ok(stream) => stream,
        // Its queue is full: it listens and does not accept.
        Err(e) if e.kind() == ErrorKind::WouldBlock => return Err(no_answer(root, &e, within)),
        Err(_) => return Ok(None),
    };
    match exchange(&stream, request, within) {
        Ok(answer) => permitted(answer),
        Err(e) if is_dead(&e) => Ok(None),
        Err(e) => Err(no_answer(root, &e, within)),
    }
}

fn no_answer(root: &Root, error: &std::io::Error, within: Duration) -> Failure {
    let socket = root.path(SOCKET);
    // What the kernel calls EAGAIN is the end of that time.
    let why = match error.kind() {
        ErrorKind::WouldBlock => format!(" within {} s", within.as_secs()),
        _ => format!(": {error}"),
    };
    silent(format!("the agent does not answer on {}{why}", socket.display()))
}

/// The failure of an agent that runs and does not answer.
pub fn silent(why: impl Into<String>) -> Failure {
    Failure::new(Status::NoAgent, why)
        .hint("/run/eke/agent.log may say why; `eke down` ends it, and `eke up` starts another")
}

/// A connection to the public socket on which reading waits without a limit.
///
/// # Errors
/// No agent listens.
pub fn watching(root: &Root) -> std::io::Result<UnixStream> {
    connect_to(&root.path(SOCKET), ANSWER_WITHIN)
}

/// Connects to the agent, with a limit of the time in its queue.
///
/// # Errors
/// No agent listens, or the kernel's answer: `WouldBlock` if its queue is full.
pub fn connect(root: &Root) -> std::io::Result<UnixStream> {
    connect_within(root, ANSWER_WITHIN)
}

fn connect_within(root: &Root, within: Duration) -> std::io::Result<UnixStream> {
    if rustix::process::geteuid().is_root() {
        match connect_to(&root.path(SOCKET_OF_ROOT), within) {
            Err(e) if e.kind() != ErrorKind::WouldBlock => {}
            // An agent that does not accept here accepts nowhere.
            answer => return answer,
        }
    }
    connect_to(&root.path(SOCKET), within)
}

/// Waits for a place in the agent's queue, with a limit (`SO_SNDTIMEO` bounds connect(2), unix(7)).
fn connect_to(path: &Path, within: Duration) -> std::io::Result<UnixStream> {
    let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&stream, Timeout::Send, Some(within))?;
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
    use ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

fn exchange(mut stream: &UnixStream, request: &Request, within: Duration) -> std::io::Result<Response> {
    stream.set_read_timeout(Some(within))?;
    stream.set_write_timeout(Some(within))?;
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
    snapshot_within(root, ANSWER_WITHIN)
}

/// The same, with another time for the answer.
///
/// # Errors
/// See [`ask`].
pub fn snapshot_within(root: &Root, within: Duration) -> Outcome<Option<Snapshot>> {
    Ok(match ask_within(root, &Request::Status, within)? {
        Some(Response::Status(snapshot)) => Some(*snapshot),
        _ => None,
    })
}
