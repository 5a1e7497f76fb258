//! One client: a line in, a line out, repeated while it keeps to its deadline. No call here blocks.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use eke_linux::passed::{self, Next};
use rustix::event::PollFlags;
use rustix::net::sockopt::{set_socket_oobinline, socket_peercred};

use crate::aside::Aside;
use crate::request::LONGEST;

/// A client that does not finish an exchange within this time is disconnected.
pub const PATIENCE_MS: u64 = 5_000;
/// Pause after a partial request, so that a client that sends single bytes cannot keep the agent busy.
const PIECES_EVERY_MS: u64 = 50;
/// The uid of a client that the kernel cannot name: no user has it.
const UNKNOWN: u32 = u32::MAX;

/// The result of reading from a client.
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming {
    /// A complete line, without its line end.
    Line(Vec<u8>),
    /// More than [`LONGEST`] bytes without a line end.
    TooLong,
    /// No complete line yet.
    Unfinished,
    /// The client disconnected, the connection failed, or descriptors come.
    Gone,
}

/// A connection with its buffers: at most one request and one answer.
#[derive(Debug)]
pub struct Client {
    stream: Rc<UnixStream>,
    uid: u32,
    inbound: Vec<u8>,
    outbound: Vec<u8>,
    deadline_ms: u64,
    rests_until_ms: u64,
    last_answer: bool,
    watches: bool,
    aside: Option<Aside>,
}

impl Client {
    /// A client that connected at `now_ms`. The kernel reports its user (SO_PEERCRED, unix(7)). A client that the
    /// kernel cannot name, such as a process of another PID namespace, is not root.
    ///
    /// # Errors
    /// The kernel's answer if the connection cannot be made non-blocking.
    pub fn new(stream: UnixStream, now_ms: u64) -> std::io::Result<Self> {
        stream.set_nonblocking(true)?;
        let uid = socket_peercred(&stream).map_or(UNKNOWN, |peer| peer.uid.as_raw());
        Ok(Self {
            stream: Rc::new(stream),
            uid,
            inbound: Vec::new(),
            outbound: Vec::new(),
            deadline_ms: now_ms + PATIENCE_MS,
            rests_until_ms: 0,
            last_answer: false,
            watches: false,
            aside: None,
        })
    }

    /// The same on a kernel that does not refuse descriptors. Root passes none.
    ///
    /// # Errors
    /// The kernel's answer if out-of-band bytes cannot be read in line: they could hide descriptors.
    pub fn with(mut self, aside: &Aside) -> std::io::Result<Self> {
        if !self.is_root() {
            set_socket_oobinline(&self.stream, true)?;
            self.aside = Some(aside.clone());
        }
        Ok(self)
    }

    /// The uid of its process.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// Whether its process is root's.
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// Events to poll for. The agent does not read from a client with a pending answer, or during a pause.
    pub fn waits_for(&self, now_ms: u64) -> PollFlags {
        match (self.outbound.is_empty(), self.rests(now_ms)) {
            (false, _) => PollFlags::OUT,
            (true, false) => PollFlags::IN,
            (true, true) => PollFlags::empty(),
        }
    }

    /// Whether the buffer already contains another complete request.
    pub fn has_line(&self) -> bool {
        self.outbound.is_empty() && self.inbound.contains(&b'\n')
    }

    /// Whether it has neither a request nor an answer pending.
    pub fn is_silent(&self) -> bool {
        self.outbound.is_empty() && !self.has_line()
    }

    /// Sets the time of the next read.
    pub fn rest_until(&mut self, ms: u64) {
        self.rests_until_ms = ms;
    }

    /// Whether it is too early to read.
    pub fn rests(&self, now_ms: u64) -> bool {
        now_ms < self.rests_until_ms
    }

    /// Starts the pause after a partial request.
    pub fn rest_after_a_piece(&mut self, now_ms: u64) {
        self.rest_until(now_ms + PIECES_EVERY_MS);
    }

    /// From now on it gets important events, and may be silent.
    pub fn watch(&mut self) {
        self.watches = true;
    }

    /// Whether it gets important events.
    pub fn watches(&self) -> bool {
        self.watches
    }

    /// Sends an event to a client that watches. It must read that in time. `false`: the connection is closed.
    pub fn notify(&mut self, line: &[u8], now_ms: u64) -> bool {
        if self.outbound.is_empty() {
            self.deadline_ms = now_ms + PATIENCE_MS;
        }
        self.answer(line, false);
        self.flush(now_ms)
    }

    /// Whether its deadline has passed. A client that watches has one only while it has something to read.
    pub fn is_overdue(&self, now_ms: u64) -> bool {
        now_ms >= self.deadline()
    }

    fn deadline(&self) -> u64 {
        if self.watches && self.outbound.is_empty() { u64::MAX } else { self.deadline_ms }
    }

    /// The next time at which it needs service without input: a buffered request, the end of a pause, or its deadline.
    pub fn due_ms(&self, now_ms: u64) -> u64 {
        let in_hand = self.has_line().then_some(self.rests_until_ms.max(now_ms));
        let rested = self.rests(now_ms).then_some(self.rests_until_ms);
        in_hand.into_iter().chain(rested).fold(self.deadline(), u64::min)
    }

    /// Reads what has arrived, and takes a line from it.
    pub fn read(&mut self) -> Incoming {
        if !self.has_line() {
            let mut chunk = [0; LONGEST + 1];
            let room = (LONGEST + 1).saturating_sub(self.inbound.len());
            match self.receive(&mut chunk[..room]) {
                Ok(0) => return Incoming::Gone,
                Ok(n) => self.inbound.extend_from_slice(&chunk[..n]),
                Err(e) if is_later(&e) => return Incoming::Unfinished,
                Err(_) => return Incoming::Gone,
            }
        }
        self.take_line()
    }

    fn receive(&self, room: &mut [u8]) -> std::io::Result<usize> {
        if self.aside.is_none() {
            return self.stream.as_ref().read(room);
        }
        match passed::read(&self.stream, room)? {
            Next::Bytes(count) => Ok(count),
            Next::Descriptors => Ok(0),
        }
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

    /// Starts sending an answer; `last` closes the connection after it.
    pub fn answer(&mut self, line: &[u8], last: bool) {
        self.outbound.extend_from_slice(line);
        self.last_answer = last;
    }

    /// Writes as much as the connection takes. `false`: the connection is closed.
    pub fn flush(&mut self, now_ms: u64) -> bool {
        match self.stream.as_ref().write(&self.outbound) {
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

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(aside) = &self.aside {
            aside.end(&self.stream, self.uid);
        }
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
        /// Pretends that this user connected.
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
    fn a_watching_client_may_be_silent_but_must_read_its_events() {
        let (mut there, mut client) = pair();
        assert!(!client.watches() && client.is_overdue(1_000_000));
        client.watch();
        assert!(!client.is_overdue(1_000_000));
        assert!(client.notify(b"event\n", 1_000_000));
        let mut read = [0; 6];
        there.read_exact(&mut read).unwrap();
        assert_eq!((&read, client.is_overdue(2_000_000)), (b"event\n", false));
        assert!(client.notify(&vec![b'x'; 8 << 20], 2_000_000));
        assert!(!client.is_overdue(2_004_999) && client.is_overdue(2_005_000));
        assert_eq!(client.due_ms(2_000_000), 2_005_000);
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
    fn a_paused_client_is_not_polled_and_is_due_when_the_pause_ends() {
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
