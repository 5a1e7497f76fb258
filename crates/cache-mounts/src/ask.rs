//! Requests to the supervisors of mounts: to all at once, with one deadline for all. A supervisor belongs to the user who mounted, so
//! its answer may be anything.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::connection::Connection;
use crate::line::{Line, LineError, message, parse};
use crate::socket::connect;
use crate::status::{Request, Response};
use crate::{Mount, SocketDirs};

/// At most so many mounts of one other user are asked.
pub const MOST_OF_A_USER: usize = 16;
/// The longest answer in bytes. A worker's stats take at most half of it.
const ANSWER_MOST: usize = 256 << 10;
/// A greater number counts nothing real: in nanoseconds it is nine years.
const NUMBER_MOST: u64 = 1 << 58;

/// Why a supervisor that listens gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The connection failed.
    #[error("its supervisor cannot be connected to: {0}")]
    Connect(#[source] io::Error),
    /// No answer, or a wrong one.
    #[error("its supervisor does not answer: {0}")]
    Answer(#[source] LineError),
    /// Its user has too many mounts.
    #[error("it was not asked: only {MOST_OF_A_USER} mounts of one user are")]
    NotAsked,
}

/// The answer. `None`: nobody listens, so the supervisor is dead.
pub type Asked = Result<Option<Response>, AskError>;

/// Sends a request to one supervisor and waits at most `within` for its answer.
///
/// # Errors
/// The supervisor listens and does not answer, or belongs to another user than the mount.
pub fn ask(dirs: &SocketDirs, mount: &Mount, request: Request, within: Duration) -> Asked {
    ask_all(dirs, &[mount], request, within).pop().unwrap_or(Ok(None))
}

/// Sends a request to all of them and waits at most `within` for all together. Returns an answer for each mount, in the same order.
pub fn ask_all(dirs: &SocketDirs, mounts: &[&Mount], request: Request, within: Duration) -> Vec<Asked> {
    let until = Instant::now() + within;
    let request = message(&request);
    let mut of_user: HashMap<u32, usize> = HashMap::new();
    let mut exchanges: Vec<Exchange> = mounts
        .iter()
        .map(|mount| {
            let count = of_user.entry(mount.uid).or_default();
            *count += 1;
            let is_asked = *count <= MOST_OF_A_USER || mount.uid == dirs.own();
            if is_asked { Exchange::begin(dirs, mount) } else { Exchange::over(Err(AskError::NotAsked)) }
        })
        .collect();
    while wait(&exchanges, until) {
        exchanges.iter_mut().for_each(|exchange| exchange.advance(&request));
    }
    let late = || AskError::Answer(LineError::Late(within.as_secs_f64()));
    exchanges.into_iter().map(|exchange| exchange.answer.unwrap_or_else(|| Err(late()))).collect()
}

/// Waits until an exchange can go on. `false`: none is under way any more, or the time is over.
fn wait(exchanges: &[Exchange], until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    let under_way = exchanges.iter().filter(|exchange| exchange.answer.is_none());
    let mut fds: Vec<PollFd<'_>> = under_way.filter_map(Exchange::waits_for).collect();
    let Ok(left) = Timespec::try_from(left) else { return false };
    if fds.is_empty() {
        return false;
    }
    match poll(&mut fds, Some(&left)) {
        Ok(ready) => ready > 0,
        Err(e) => e == Errno::INTR,
    }
}

/// A request to one supervisor, and its answer.
struct Exchange {
    stream: Option<Connection>,
    sent: usize,
    is_sent: bool,
    line: Line,
    answer: Option<Asked>,
}

impl Exchange {
    fn begin(dirs: &SocketDirs, mount: &Mount) -> Self {
        match connect(dirs, mount.device, mount.uid) {
            Ok(Some(stream)) => Self { stream: Some(stream), answer: None, ..Self::over(Ok(None)) },
            Ok(None) => Self::over(Ok(None)),
            Err(e) => Self::over(Err(AskError::Connect(e))),
        }
    }

    fn over(answer: Asked) -> Self {
        Self { stream: None, sent: 0, is_sent: false, line: Line::new(ANSWER_MOST), answer: Some(answer) }
    }

    fn waits_for(&self) -> Option<PollFd<'_>> {
        let what = if self.is_sent { PollFlags::IN } else { PollFlags::OUT };
        Some(PollFd::new(self.stream.as_ref()?, what))
    }

    fn advance(&mut self, request: &[u8]) {
        let (Some(stream), None) = (&self.stream, &self.answer) else { return };
        let step = if self.is_sent {
            // One piece, if it has arrived
            self.line.advance(stream, Duration::ZERO)
        } else {
            write(stream, &request[self.sent..]).map(|count| {
                self.sent += count;
                self.is_sent = self.sent == request.len();
                None
            })
        };
        self.answer = match step {
            Ok(None) => None,
            Ok(Some(line)) => Some(response(&line).map(Some).map_err(AskError::Answer)),
            Err(e) if e.is_gone() => Some(Ok(None)),
            Err(e) => Some(Err(AskError::Answer(e))),
        };
    }
}

fn write(stream: impl AsFd, bytes: &[u8]) -> Result<usize, LineError> {
    match rustix::net::send(stream, bytes, rustix::net::SendFlags::NOSIGNAL) {
        Ok(count) => Ok(count),
        Err(Errno::INTR | Errno::AGAIN) => Ok(0),
        Err(e) => Err(io::Error::from(e).into()),
    }
}

/// Clients add the numbers up, so none may be so great that a sum overflows.
fn response(line: &[u8]) -> Result<Response, LineError> {
    let value: serde_json::Value = parse(line)?;
    if has_too_great_a_number(&value) {
        return Err(LineError::Nonsense { why: "a number in it is too great".into(), start: String::new() });
    }
    parse(line)
}

fn has_too_great_a_number(value: &serde_json::Value) -> bool {
    use serde_json::Value::{Array, Number, Object};
    match value {
        Number(number) => number.as_u64().is_some_and(|n| n > NUMBER_MOST),
        Array(all) => all.iter().any(has_too_great_a_number),
        Object(all) => all.values().any(has_too_great_a_number),
        _ => false,
    }
}

#[cfg(test)]
#[path = "ask_tests.rs"]
mod tests;
