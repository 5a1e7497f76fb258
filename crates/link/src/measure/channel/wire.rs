//! Bytes through a channel's pipes, which never block for ever.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Channel;
use crate::error::{Error, Result};
use crate::measure::collect::LONGEST_TEXT;

pub(super) const DOWN: &str = "bytes came from there";
/// A request that is not answered after so long counts as broken off.
pub(super) const STALLED_AFTER: Duration = Duration::from_secs(8);
/// The slowest link: half of GPRS, or of a modem of 33 600 bit/s. Slices are sized by the link's rate, so they take less time.
const SLOWEST_BYTES_PER_S: u64 = 2 << 10;
/// The longest delay of a signal.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

impl Channel<'_> {
    pub(super) fn line(&mut self, doing: &'static str) -> Result<String> {
        self.line_until(Instant::now() + STALLED_AFTER, doing)
    }

    pub(super) fn line_until(&mut self, until: Instant, doing: &'static str) -> Result<String> {
        loop {
            if let Some(at) = self.ahead.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.ahead.drain(..=at).collect();
                return Ok(String::from_utf8_lossy(&line[..at]).trim_end_matches('\r').to_owned());
            }
            let mut bytes = [0; 4096];
            let n = self.read(&mut bytes, until, doing)?;
            self.ahead.extend_from_slice(&bytes[..n]);
            if self.ahead.len() > LONGEST_TEXT {
                self.ahead.clear();
            }
        }
    }

    /// Reads and discards so many bytes.
    pub(super) fn discard(&mut self, bytes: u64) -> Result<()> {
        let buffered = bytes.min(self.ahead.len() as u64);
        self.ahead.drain(..buffered as usize);
        let mut left = bytes - buffered;
        let mut room = vec![0; 256 << 10];
        let until = slice_deadline(bytes);
        while left > 0 {
            let most = left.min(room.len() as u64) as usize;
            left -= self.read(&mut room[..most], until, DOWN)? as u64;
        }
        Ok(())
    }

    pub(super) fn read(&mut self, room: &mut [u8], until: Instant, doing: &'static str) -> Result<usize> {
        loop {
            self.check_deadline(until, doing)?;
            match self.output.read(room) {
                Ok(0) => return Err(self.ended(doing)),
                Ok(n) => return Ok(n),
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => wait(&self.output, PollFlags::IN),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::Pipe { what: "read from", source }),
            }
        }
    }

    /// Writes a request.
    pub(super) fn write(&mut self, bytes: &[u8], doing: &'static str) -> Result<()> {
        self.write_until(bytes, Instant::now() + STALLED_AFTER, doing)
    }

    pub(super) fn write_until(
        &mut self,
        mut bytes: &[u8],
        until: Instant,
        doing: &'static str,
    ) -> Result<()> {
        while !bytes.is_empty() {
            self.check_deadline(until, doing)?;
            let Some(input) = &mut self.input else { return Err(self.ended(doing)) };
            match input.write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => wait(input, PollFlags::OUT),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => return Err(self.ended(doing)),
                Err(source) => return Err(Error::Pipe { what: "write to", source }),
            }
        }
        Ok(())
    }

    /// A request's deadline, a signal, and the end of the host's time: also a far end that always sends something comes to an end.
    fn check_deadline(&self, until: Instant, doing: &'static str) -> Result<()> {
        if self.shutdown.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let now = Instant::now();
        if now < until && self.most_time.is_none_or(|end| now < end) {
            return Ok(());
        }
        Err(Error::Stalled { host: self.name.clone(), doing })
    }

    pub(super) fn ended(&mut self, doing: &'static str) -> Error {
        if self.shutdown.load(Ordering::Relaxed) {
            return Error::Interrupted;
        }
        let output = self.finish();
        let last = output.lines().rev().find(|l| !l.starts_with("debug") && !l.trim().is_empty());
        Error::Ended { host: self.name.clone(), doing, output: last.unwrap_or_default().trim().to_owned() }
    }
}

/// When the bytes of a slice must have passed.
pub(super) fn slice_deadline(bytes: u64) -> Instant {
    Instant::now() + STALLED_AFTER + Duration::from_secs(bytes / SLOWEST_BYTES_PER_S)
}

fn wait(fd: &impl AsFd, flags: PollFlags) {
    let _ = poll(&mut [PollFd::new(fd, flags)], Some(&TICK));
}
