//! Bytes through a channel's pipes, which never block for ever.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::requests::DOWN;
use super::{Channel, LONGEST_TEXT};
use crate::error::{Error, Result};

/// A link that is silent for so long counts as broken.
const STALLED_AFTER: Duration = Duration::from_secs(8);
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
        while left > 0 {
            let most = left.min(room.len() as u64) as usize;
            left -= self.read(&mut room[..most], Instant::now() + STALLED_AFTER, DOWN)? as u64;
        }
        Ok(())
    }

    pub(super) fn read(&mut self, room: &mut [u8], until: Instant, doing: &'static str) -> Result<usize> {
        loop {
            match self.output.read(room) {
                Ok(0) => return Err(self.ended(doing)),
                Ok(n) => return Ok(n),
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                    wait(&self.output, PollFlags::IN);
                    self.check_deadline(until, doing)?;
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::Pipe { what: "read from", source }),
            }
        }
    }

    pub(super) fn write(&mut self, mut bytes: &[u8], doing: &'static str) -> Result<()> {
        let mut until = Instant::now() + STALLED_AFTER;
        while !bytes.is_empty() {
            let Some(input) = &mut self.input else { return Err(self.ended(doing)) };
            match input.write(bytes) {
                Ok(n) => {
                    bytes = &bytes[n..];
                    until = Instant::now() + STALLED_AFTER;
                }
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                    wait(input, PollFlags::OUT);
                    self.check_deadline(until, doing)?;
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => return Err(self.ended(doing)),
                Err(source) => return Err(Error::Pipe { what: "write to", source }),
            }
        }
        Ok(())
    }

    fn check_deadline(&self, until: Instant, doing: &'static str) -> Result<()> {
        if self.shutdown.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        if Instant::now() < until {
            return Ok(());
        }
        Err(Error::Stalled { host: self.name.clone(), doing, seconds: STALLED_AFTER.as_secs() })
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

/// Collects output, up to a bound, so that ssh never waits for a reader.
pub(in crate::measure) fn listen(
    mut error: impl Read + Send + 'static,
    collected: Arc<Mutex<Vec<u8>>>,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(n) = error.read(&mut bytes) {
            if n == 0 {
                return;
            }
            let mut collected = collected.lock().unwrap_or_else(PoisonError::into_inner);
            if collected.len() < LONGEST_TEXT {
                collected.extend_from_slice(&bytes[..n]);
            }
        }
    })
}

fn wait(fd: &impl AsFd, flags: PollFlags) {
    let _ = poll(&mut [PollFd::new(fd, flags)], Some(&TICK));
}
