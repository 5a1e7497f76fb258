//! One JSON line a message, bounded in size and time: what comes from another process may be anything.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest question in bytes.
pub const QUESTION_MOST: usize = 4 << 10;
/// The longest answer in bytes.
pub const ANSWER_MOST: usize = 1 << 20;

/// Why there is no message.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// It closed before it said anything.
    #[error("it closed without a word")]
    Closed,
    /// It closed within a line.
    #[error("it closed in the middle of a line: {0}")]
    Cut(String),
    /// The time is over.
    #[error("it said nothing within {0:.1} s")]
    Late(f64),
    /// Longer than any message.
    #[error("it said more than {0} bytes, which is no message of eke's")]
    TooLong(usize),
    /// Not this version's JSON.
    #[error("it said what is no message of this eke ({why}): {start}")]
    Nonsense {
        /// The parser's words.
        why: String,
        /// How it begins.
        start: String,
    },
    /// What the kernel answers.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl LineError {
    /// Did the other end go away?
    pub fn is_gone(&self) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionReset};
        match self {
            Self::Closed | Self::Cut(_) => true,
            Self::Io(e) => matches!(e.kind(), BrokenPipe | ConnectionReset),
            _ => false,
        }
    }
}

/// A line on its way in.
#[derive(Debug)]
pub struct Line {
    bytes: Vec<u8>,
    most: usize,
}

impl Line {
    /// Of at most so many bytes.
    pub fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), most }
    }

    /// Takes in what came. `Some`: the line is whole; what follows it in the same piece makes it no message.
    ///
    /// # Errors
    /// It is too long, or more than one line.
    pub fn take(&mut self, piece: &[u8]) -> Result<Option<Vec<u8>>, LineError> {
        self.bytes.extend_from_slice(piece);
        if self.bytes.len() > self.most {
            return Err(LineError::TooLong(self.most));
        }
        match self.bytes.iter().position(|b| *b == b'\n') {
            None => Ok(None),
            Some(end) if end + 1 == self.bytes.len() => {
                self.bytes.pop();
                Ok(Some(std::mem::take(&mut self.bytes)))
            }
            Some(_) => Err(nonsense("more than one line", &self.bytes)),
        }
    }

    /// Waits at most `within` for a piece and takes it in; `None`: not whole yet.
    ///
    /// # Errors
    /// See [`LineError`]; never [`LineError::Late`].
    pub fn advance(&mut self, from: impl AsFd, within: Duration) -> Result<Option<Vec<u8>>, LineError> {
        if !ready(from.as_fd(), PollFlags::IN, within)? {
            return Ok(None);
        }
        let mut piece = [0; 4096];
        match rustix::io::read(from, &mut piece) {
            Ok(0) if self.bytes.is_empty() => Err(LineError::Closed),
            Ok(0) => Err(LineError::Cut(shown(&self.bytes))),
            Ok(count) => self.take(&piece[..count]),
            Err(Errno::INTR | Errno::AGAIN) => Ok(None),
            Err(e) => Err(io::Error::from(e).into()),
        }
    }
}

/// Reads one message of at most `most` bytes.
///
/// # Errors
/// See [`LineError`].
pub fn receive<T: DeserializeOwned>(from: impl AsFd, most: usize, within: Duration) -> Result<T, LineError> {
    let until = Instant::now() + within;
    let mut line = Line::new(most);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if let Some(bytes) = line.advance(from.as_fd(), left)? {
            return parse(&bytes);
        }
        if left.is_zero() {
            return Err(LineError::Late(within.as_secs_f64()));
        }
    }
}

/// A line as a message.
///
/// # Errors
/// It is none.
pub fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T, LineError> {
    serde_json::from_slice(line).map_err(|e| nonsense(&e.to_string(), line))
}

/// A message as a line.
pub fn message<T: Serialize>(message: &T) -> Vec<u8> {
    // Strings and numbers only; serialising those cannot fail.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Writes one message.
///
/// # Errors
/// The other end is gone or takes nothing within the time.
pub fn send<T: Serialize>(to: impl AsFd, message: &T, within: Duration) -> Result<(), LineError> {
    let line = self::message(message);
    let until = Instant::now() + within;
    let mut rest = &line[..];
    while !rest.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if ready(to.as_fd(), PollFlags::OUT, left)? {
            rest = &rest[written(to.as_fd(), rest)?..];
        } else if left.is_zero() {
            return Err(LineError::Late(within.as_secs_f64()));
        }
    }
    Ok(())
}

/// At most a page, so that a pipe that is ready takes it without waiting (pipe(7), `PIPE_BUF`).
fn written(to: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, LineError> {
    match rustix::io::write(to, &bytes[..bytes.len().min(4096)]) {
        Ok(count) => Ok(count),
        Err(Errno::INTR | Errno::AGAIN) => Ok(0),
        Err(e) => Err(io::Error::from(e).into()),
    }
}

fn ready(fd: BorrowedFd<'_>, what: PollFlags, within: Duration) -> io::Result<bool> {
    let within = Timespec::try_from(within).map_err(|_| io::ErrorKind::InvalidInput)?;
    match poll(&mut [PollFd::from_borrowed_fd(fd, what)], Some(&within)) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

fn nonsense(why: &str, bytes: &[u8]) -> LineError {
    // the parser's own words may quote what it was sent
    LineError::Nonsense { why: eke_model::text::one_line(why).into_owned(), start: shown(bytes) }
}

/// The first bytes, with all that a terminal would obey escaped.
fn shown(bytes: &[u8]) -> String {
    let start = &bytes[..bytes.len().min(40)];
    format!("\"{}\"", start.escape_ascii())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::status::Request;

    const LONG: Duration = Duration::from_secs(20);

    fn said(bytes: &[u8]) -> Result<Request, LineError> {
        let (mut one, other) = UnixStream::pair().unwrap();
        one.write_all(bytes).unwrap();
        drop(one);
        receive(other, QUESTION_MOST, LONG)
    }

    #[test]
    fn a_message_arrives_in_any_pieces() {
        let (mut one, other) = UnixStream::pair().unwrap();
        let sent = b"{\"ask\":\"umount\",\"lazy\":true}\n";
        let writer = std::thread::spawn(move || {
            for byte in sent {
                one.write_all(&[*byte]).unwrap();
            }
            one
        });
        let got: Request = receive(other, QUESTION_MOST, LONG).unwrap();
        assert_eq!(got, Request::Umount { lazy: true });
        drop(writer.join());
    }

    #[test]
    fn what_is_sent_is_received_whole() {
        let (one, other) = UnixStream::pair().unwrap();
        let text = "x".repeat(ANSWER_MOST - 3);
        let sent = text.clone();
        let writer = std::thread::spawn(move || send(one, &sent, LONG));
        let got: String = receive(other, ANSWER_MOST, LONG).unwrap();
        assert!(got == text);
        writer.join().unwrap().unwrap();
    }

    #[test]
    fn foreign_bytes_are_named_and_harmless_to_a_terminal() {
        let error = said(b"\x1b[31mGET / HTTP/1.1\r\n").unwrap_err();
        let text = error.to_string();
        assert!(text.contains("no message of this eke") && text.contains("\\x1b[31mGET / HTTP"), "{text}");
        assert!(!text.contains('\x1b'));
        assert!(matches!(said(b"{}\n{}\n").unwrap_err(), LineError::Nonsense { .. }));
        assert!(matches!(said(b"").unwrap_err(), LineError::Closed));
        assert!(matches!(said(b"{\"ask\"").unwrap_err(), LineError::Cut(_)));
    }

    #[test]
    fn a_line_without_end_is_given_up() {
        let (mut one, other) = UnixStream::pair().unwrap();
        let writer = std::thread::spawn(move || while one.write_all(&[b'x'; 512]).is_ok() {});
        let error = receive::<Request>(other, QUESTION_MOST, LONG).unwrap_err();
        assert!(matches!(error, LineError::TooLong(QUESTION_MOST)));
        writer.join().unwrap();
    }

    #[test]
    fn silence_ends() {
        let (one, other) = UnixStream::pair().unwrap();
        let error = receive::<Request>(other, QUESTION_MOST, Duration::from_millis(5)).unwrap_err();
        assert!(matches!(error, LineError::Late(_)));
        drop(one);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_message_or_an_error(bytes in proptest::collection::vec(0u8.., 0..100)) {
            let _ = said(&bytes);
        }
    }
}
