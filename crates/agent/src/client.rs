//! One client: a line in, a line out, again while it keeps to its time. No call here waits.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use rustix::event::PollFlags;
use rustix::net::sockopt::socket_peercred;

use crate::request::LONGEST;

/// A client that did not finish an exchange within this time is dropped.
pub const PATIENCE_MS: u64 = 5_000;

/// What a client's bytes amount to.
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming {
    /// A line, without its end.
    Line(Vec<u8>),
    /// More than [`LONGEST`] bytes without an end of line.
    TooLong,
    /// Nothing yet.
    Unfinished,
    /// It left, or the connection failed.
    Gone,
}

/// A connection with its buffers: at most one request and one answer.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    is_root: bool,
    inbound: Vec<u8>,
    outbound: Vec<u8>,
    deadline_ms: u64,
    last_answer: bool,
}

impl Client {
    /// A client that connected at `now_ms`. Who it is, the kernel says (SO_PEERCRED, unix(7)); one that the kernel
    /// cannot name, such as a process of another PID namespace, is not root.
    ///
    /// # Errors
    /// The kernel's answer where the connection cannot be made non-blocking.
    pub fn new(stream: UnixStream, now_ms: u64) -> std::io::Result<Self> {
        stream.set_nonblocking(true)?;
        let is_root = socket_peercred(&stream).is_ok_and(|peer| peer.uid.is_root());
        let deadline_ms = now_ms + PATIENCE_MS;
        Ok(Self {
            stream,
            is_root,
            inbound: Vec::new(),
            outbound: Vec::new(),
            deadline_ms,
            last_answer: false,
        })
    }

    /// Is its process root's?
    pub fn is_root(&self) -> bool {
        self.is_root
    }

    /// What to poll for: it is not listened to while it has an answer to take.
    pub fn waits_for(&self) -> PollFlags {
        if self.outbound.is_empty() { PollFlags::IN } else { PollFlags::OUT }
    }

    /// Did a whole request come with the one before it?
    pub fn has_line(&self) -> bool {
        self.outbound.is_empty() && self.inbound.contains(&b'\n')
    }

    /// Did it use up its time?
    pub fn is_overdue(&self, now_ms: u64) -> bool {
        now_ms >= self.deadline_ms
    }

    /// When it will have used up its time.
    pub fn deadline_ms(&self) -> u64 {
        self.deadline_ms
    }

    /// Takes what is there to read, and a line out of it.
    pub fn read(&mut self) -> Incoming {
        if !self.has_line() {
            let mut chunk = [0; LONGEST + 1];
            let room = (LONGEST + 1).saturating_sub(self.inbound.len());
            match self.stream.read(&mut chunk[..room]) {
                Ok(0) => return Incoming::Gone,
                Ok(n) => self.inbound.extend_from_slice(&chunk[..n]),
                Err(e) if is_later(&e) => return Incoming::Unfinished,
                Err(_) => return Incoming::Gone,
            }
        }
        self.take_line()
    }

    fn take_line(&mut self) -> Incoming {
        match self.inbound.iter().position(|b| *b == b'\n') {
            Some(end) => {
                let mut line: Vec<u8> = self.inbound.drain(..=end).collect();
                line.pop();
                Incoming::Line(line)
            }
            None if self.inbound.len() > LONGEST => Incoming::TooLong,
            None => Incoming::Unfinished,
        }
    }

    /// Starts an answer; `last`: after it the connection ends.
    pub fn answer(&mut self, line: &[u8], last: bool) {
        self.outbound.extend_from_slice(line);
        self.last_answer = last;
    }

    /// Writes what the connection takes. `false`: the connection is over.
    pub fn flush(&mut self, now_ms: u64) -> bool {
        match self.stream.write(&self.outbound) {
            Ok(n) => {
                self.outbound.drain(..n);
            }
            Err(e) if is_later(&e) => return true,
            Err(_) => return false,
        }
        if self.outbound.is_empty() {
            self.deadline_ms = now_ms + PATIENCE_MS;
            return !self.last_answer;
        }
        true
    }
}

fn is_later(e: &std::io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (UnixStream, Client) {
        let (there, here) = UnixStream::pair().unwrap();
        (there, Client::new(here, 0).unwrap())
    }

    #[test]
    fn a_line_may_come_in_pieces_and_two_at_once() {
        let (mut there, mut client) = pair();
        assert_eq!(client.read(), Incoming::Unfinished);
        there.write_all(b"sta").unwrap();
        assert_eq!(client.read(), Incoming::Unfinished);
        there.write_all(b"tus\nstop\n").unwrap();
        assert_eq!(client.read(), Incoming::Line(b"status".to_vec()));
        assert!(client.has_line());
        assert_eq!(client.read(), Incoming::Line(b"stop".to_vec()));
        drop(there);
        assert_eq!(client.read(), Incoming::Gone);
    }

    #[test]
    fn a_line_of_the_longest_length_passes_and_one_more_byte_does_not() {
        let (mut there, mut client) = pair();
        there.write_all(&[b'x'; LONGEST]).unwrap();
        assert_eq!(client.read(), Incoming::Unfinished);
        there.write_all(b"\n").unwrap();
        assert_eq!(client.read(), Incoming::Line(vec![b'x'; LONGEST]));
        there.write_all(&[b'x'; LONGEST + 1]).unwrap();
        assert_eq!(client.read(), Incoming::TooLong);
    }

    #[test]
    fn bytes_without_end_do_not_buy_time_and_an_exchange_does() {
        let (mut there, mut client) = pair();
        there.write_all(b"x").unwrap();
        client.read();
        assert!(!client.is_overdue(4_999) && client.is_overdue(5_000));
        client.answer(b"{}\n", false);
        assert!(client.flush(4_000));
        assert!(!client.is_overdue(8_999) && client.is_overdue(9_000));
    }

    #[test]
    fn a_client_that_does_not_read_keeps_one_answer_and_gets_no_second() {
        let (_there, mut client) = pair();
        client.answer(&vec![b'x'; 8 << 20], true);
        assert!(client.flush(1));
        assert!(!client.outbound.is_empty() && !client.has_line());
        assert_eq!(client.waits_for(), PollFlags::OUT);
    }
}
