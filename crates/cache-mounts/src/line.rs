//! One JSON line a message, bounded in size and time, since another process may send anything.

use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest request in bytes: the longest path (`PATH_MAX`) as an array of bytes.
pub const REQUEST_MOST: usize = 32 << 10;
/// The longest answer in bytes.
pub const ANSWER_MOST: usize = 1 << 20;

/// Why no message was received.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// The other end closed the connection before it sent anything.
    #[error("it closed the connection without an answer")]
    Closed,
    /// It closed the connection within a line.
    #[error("it closed the connection in the middle of a line: {0}")]
    Cut(String),
    /// Seconds that passed.
    #[error("it sent nothing within {0:.1} s")]
    Late(f64),
    /// Longer than any message, in bytes.
    #[error("it sent more than {0} bytes, longer than any message of eke")]
    TooLong(usize),
    /// Not this version's JSON.
    #[error("it sent no message of this version of eke ({why}): {start}")]
    Nonsense {
        /// The parser's error.
        why: String,
        /// The first bytes.
        start: String,
    },
    /// The kernel's error.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl LineError {
    /// Did the other end close the connection?
    pub fn is_gone(&self) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionReset};
        match self {
            Self::Closed | Self::Cut(_) => true,
            Self::Io(e) => matches!(e.kind(), BrokenPipe | ConnectionReset),
            _ => false,
        }
    }
}

/// A line that arrives in pieces.
#[derive(Debug)]
pub struct Line {
    bytes: Vec<u8>,
    most: usize,
}

impl Line {
    /// An empty one, which may become `most` bytes long.
    pub fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), most }
    }

    /// Adds a piece. `Some`: the line is whole.
    ///
    /// # Errors
    /// The line is too long, or something follows it.
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

    /// Waits at most `within` for a piece and adds it. `None`: the line is not whole yet.
    ///
    /// # Errors
    /// See [`LineError`]; never [`LineError::Late`].
    pub fn advance<F: AsFd + Read>(
        &mut self,
        mut from: F,
        within: Duration,
    ) -> Result<Option<Vec<u8>>, LineError> {
        if !ready(from.as_fd(), PollFlags::IN, within)? {
            return Ok(None);
        }
        let mut piece = [0; 4096];
        match from.read(&mut piece) {
            Ok(0) if self.bytes.is_empty() => Err(LineError::Closed),
            Ok(0) => Err(LineError::Cut(start(&self.bytes))),
            Ok(count) => self.take(&piece[..count]),
            Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }
}

/// The message in a line.
///
/// # Errors
/// The line is no such message.
pub fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T, LineError> {
    serde_json::from_slice(line).map_err(|e| nonsense(&e.to_string(), line))
}

/// A message as a line.
pub fn message<T: Serialize>(message: &T) -> Vec<u8> {
    // Strings and numbers only: serialising those cannot fail.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Writes one message.
///
/// # Errors
/// The other end is gone, or reads nothing within that time.
pub fn send<T: Serialize>(to: impl AsFd, message: &T, within: Duration) -> Result<(), LineError> {
    let line = self::message(message);
    let until = Instant::now() + within;
    let mut rest = &line[..];
    while !rest.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if ready(to.as_fd(), PollFlags::OUT, left)? {
            rest = &rest[write(to.as_fd(), rest)?..];
        } else if left.is_zero() {
            return Err(LineError::Late(within.as_secs_f64()));
        }
    }
    Ok(())
}

/// Writes at most a page: a pipe that is ready takes that without waiting (pipe(7), `PIPE_BUF`).
fn write(to: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, LineError> {
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
    // The parser's error may quote its input.
    LineError::Nonsense { why: eke_model::text::one_line(why).into_owned(), start: start(bytes) }
}

/// The first bytes, with control characters escaped, which a terminal would obey.
fn start(bytes: &[u8]) -> String {
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

    /// Reads one message of at most `most` bytes.
    fn receive<T: DeserializeOwned>(
        from: &UnixStream,
        most: usize,
        within: Duration,
    ) -> Result<T, LineError> {
        let until = Instant::now() + within;
        let mut line = Line::new(most);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if let Some(bytes) = line.advance(from, left)? {
                return parse(&bytes);
            }
            if left.is_zero() {
                return Err(LineError::Late(within.as_secs_f64()));
            }
        }
    }

    fn received(bytes: &[u8]) -> Result<Request, LineError> {
        let (mut one, other) = UnixStream::pair().unwrap();
        one.write_all(bytes).unwrap();
        drop(one);
        receive(&other, REQUEST_MOST, LONG)
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
        let got: Request = receive(&other, REQUEST_MOST, LONG).unwrap();
        assert_eq!(got, Request::Umount { lazy: true });
        drop(writer.join());
    }

    #[test]
    fn a_sent_message_is_received_whole() {
        let (one, other) = UnixStream::pair().unwrap();
        let text = "x".repeat(ANSWER_MOST - 3);
        let sent = text.clone();
        let writer = std::thread::spawn(move || send(one, &sent, LONG));
        let got: String = receive(&other, ANSWER_MOST, LONG).unwrap();
        assert!(got == text);
        writer.join().unwrap().unwrap();
    }

    #[test]
    fn a_wrong_message_is_quoted_and_harmless_to_a_terminal() {
        let error = received(b"\x1b[31mGET / HTTP/1.1\r\n").unwrap_err();
        let text = error.to_string();
        assert!(text.contains("no message of this") && text.contains("\\x1b[31mGET / HTTP"), "{text}");
        assert!(!text.contains('\x1b'));
        assert!(matches!(received(b"{}\n{}\n").unwrap_err(), LineError::Nonsense { .. }));
        assert!(matches!(received(b"").unwrap_err(), LineError::Closed));
        assert!(matches!(received(b"{\"ask\"").unwrap_err(), LineError::Cut(_)));
    }

    #[test]
    fn an_endless_line_is_an_error() {
        let (mut one, other) = UnixStream::pair().unwrap();
        let writer = std::thread::spawn(move || while one.write_all(&[b'x'; 512]).is_ok() {});
        let error = receive::<Request>(&other, REQUEST_MOST, LONG).unwrap_err();
        assert!(matches!(error, LineError::TooLong(REQUEST_MOST)));
        drop(other);
        writer.join().unwrap();
    }

    #[test]
    fn silence_is_an_error_after_the_deadline() {
        let (one, other) = UnixStream::pair().unwrap();
        let error = receive::<Request>(&other, REQUEST_MOST, Duration::from_millis(5)).unwrap_err();
        assert!(matches!(error, LineError::Late(_)));
        drop(one);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_message_or_an_error(bytes in proptest::collection::vec(0u8.., 0..100)) {
            let _ = received(&bytes);
        }
    }
}
