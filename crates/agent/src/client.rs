//! One client: a line in, a line out, again while it keeps to its time. No call here waits.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use rustix::event::PollFlags;
use rustix::net::sockopt::socket_peercred;

use crate::request::LONGEST;

/// A client that did not finish an exchange within this time is dropped.
pub const PATIENCE_MS: u64 = 5_000;
/// A client that sent a part of a request is read from again after this time, or it could have the agent run all the time with single bytes.
const PIECES_EVERY_MS: u64 = 50;
/// Who cannot be named is nobody that there is.
const UNKNOWN: u32 = u32::MAX;

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
    uid: u32,
    inbound: Vec<u8>,
    outbound: Vec<u8>,
    deadline_ms: u64,
    rests_until_ms: u64,
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
        let uid = socket_peercred(&stream).map_or(UNKNOWN, |peer| peer.uid.as_raw());
        Ok(Self {
            stream,
            uid,
            inbound: Vec::new(),
            outbound: Vec::new(),
            deadline_ms: now_ms + PATIENCE_MS,
            rests_until_ms: 0,
            last_answer: false,
        })
    }

    /// Whose process it is.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// Is its process root's?
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// What to poll for: it is not listened to while it has an answer to take, or rests.
    pub fn waits_for(&self, now_ms: u64) -> PollFlags {
        match (self.outbound.is_empty(), self.rests(now_ms)) {
            (false, _) => PollFlags::OUT,
            (true, false) => PollFlags::IN,
            (true, true) => PollFlags::empty(),
        }
    }

    /// Did a whole request come with the one before it?
    pub fn has_line(&self) -> bool {
        self.outbound.is_empty() && self.inbound.contains(&b'\n')
    }

    /// It has no request in hand and no answer to take.
    pub fn is_silent(&self) -> bool {
        self.outbound.is_empty() && !self.has_line()
    }

    /// It is not read from before this time.
    pub fn rest_until(&mut self, ms: u64) {
        self.rests_until_ms = ms;
    }

    /// Is it not to be read from yet?
    pub fn rests(&self, now_ms: u64) -> bool {
        now_ms < self.rests_until_ms
    }

    /// It sent a part of a request.
    pub fn rest_after_a_piece(&mut self, now_ms: u64) {
        self.rest_until(now_ms + PIECES_EVERY_MS);
    }

    /// Did it use up its time?
    pub fn is_overdue(&self, now_ms: u64) -> bool {
        now_ms >= self.deadline_ms
    }

    /// When something is due by time alone: a request that is in hand, the end of its rest, or of its time.
    pub fn due_ms(&self, now_ms: u64) -> u64 {
        let in_hand = self.has_line().then_some(self.rests_until_ms.max(now_ms));
        let rested = self.rests(now_ms).then_some(self.rests_until_ms);
        in_hand.into_iter().chain(rested).fold(self.deadline_ms, u64::min)
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

    impl Client {
        /// As if this user had connected.
        pub fn of_user(mut self, uid: u32) -> Self {
            self.uid = uid;
            self
        }
    }

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
        assert_eq!(client.waits_for(1), PollFlags::OUT);
    }

    #[test]
    fn whoever_rests_is_not_polled_and_is_due_when_it_ends() {
        let (mut there, mut client) = pair();
        there.write_all(b"status\nstatus\nst").unwrap();
        assert!(matches!(client.read(), Incoming::Line(_)));
        client.rest_until(50);
        assert_eq!((client.waits_for(49), client.due_ms(10)), (PollFlags::empty(), 50));
        assert_eq!((client.waits_for(50), client.due_ms(50)), (PollFlags::IN, 50));
        assert!(matches!(client.read(), Incoming::Line(_)));
        assert_eq!(client.due_ms(50), 5_000);
    }
}
