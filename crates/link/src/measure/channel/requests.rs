//! Requests over a channel, and the answers.

use std::time::{Duration, Instant};

use super::Channel;
use super::wire::{DOWN, STALLED_AFTER, slice_deadline};
use crate::error::{Error, Result};
use crate::measure::collect::LONGEST_TEXT;
use crate::parse::facts::{Facts, facts};
use crate::parse::sample::{Sample, sample};

const LINE_BYTES: usize = 64;
const UP: &str = "bytes went there";
const ECHO: &str = "short lines went there and back";

impl Channel<'_> {
    /// The facts about this end.
    ///
    /// # Errors
    /// As [`Channel::open`].
    pub fn facts(&mut self) -> Result<Facts> {
        Ok(facts(&self.text("facts\n")?))
    }

    /// The counters of a process of this end; `None`: of the ssh server.
    ///
    /// # Errors
    /// As [`Channel::open`].
    pub fn sample(&mut self, pid: Option<u32>) -> Result<Sample> {
        let request = pid.map_or("sample\n".to_owned(), |pid| format!("sample {pid}\n"));
        Ok(sample(&self.text(&request)?))
    }

    /// Receives so many bytes; returns the time.
    ///
    /// # Errors
    /// As [`Channel::open`].
    pub fn get(&mut self, bytes: u64) -> Result<Duration> {
        let start = Instant::now();
        self.write(format!("send {bytes}\n").as_bytes(), DOWN)?;
        self.discard(bytes)?;
        Ok(start.elapsed())
    }

    /// Sends so many bytes; returns the time until the other end took them.
    ///
    /// # Errors
    /// As [`Channel::open`].
    pub fn put(&mut self, bytes: u64) -> Result<Duration> {
        let block = vec![0u8; 256 << 10];
        let start = Instant::now();
        self.write(format!("take {bytes}\n").as_bytes(), UP)?;
        let until = slice_deadline(bytes);
        let mut left = bytes;
        while left > 0 {
            let n = left.min(block.len() as u64);
            self.write_until(&block[..n as usize], until, UP)?;
            left -= n;
        }
        self.expect("taken", UP)?;
        Ok(start.elapsed())
    }

    /// Sends lines of 64 bytes there and back, one after the other, for at most `most_time`; returns the time of each.
    ///
    /// # Errors
    /// As [`Channel::open`].
    pub fn echoes(&mut self, count: usize, most_time: Duration) -> Result<Vec<Duration>> {
        let mut times = Vec::with_capacity(count);
        let until = Instant::now() + most_time;
        while times.len() < count && (times.is_empty() || Instant::now() < until) {
            // one dd serves a few lines and the first, which does not count
            let batch = 1 + 5.min(count - times.len());
            self.write(format!("echo {batch}\n").as_bytes(), ECHO)?;
            for n in 0..batch {
                let start = Instant::now();
                self.write(&[b'.'; LINE_BYTES], ECHO)?;
                self.discard(LINE_BYTES as u64)?;
                // the first line waits for dd to start
                if n > 0 {
                    times.push(start.elapsed());
                }
            }
        }
        Ok(times)
    }

    /// Starts the end without ssh there, and returns its line ([`crate::far`]). Until [`Channel::end_bare`] no other request is possible.
    ///
    /// # Errors
    /// As [`Channel::open`].
    pub fn begin_bare(&mut self) -> Result<String> {
        const DOING: &str = "eke was started there";
        self.write(b"bare\n", DOING)?;
        self.line(DOING)
    }

    /// Ends it. If none was started, the shell ignores the line.
    ///
    /// # Errors
    /// As [`Channel::open`].
    pub fn end_bare(&mut self) -> Result<()> {
        self.write(b"-\n", "eke was ended there")
    }

    /// An answer of several lines, without its `end`.
    fn text(&mut self, request: &str) -> Result<String> {
        const DOING: &str = "it answered a request";
        self.write(request.as_bytes(), DOING)?;
        let mut text = String::new();
        let until = Instant::now() + STALLED_AFTER;
        loop {
            let line = self.line_until(until, DOING)?;
            if line == "end" {
                return Ok(text);
            }
            if text.len() > LONGEST_TEXT {
                return Err(Error::Answer {
                    host: self.name.clone(),
                    doing: DOING,
                    output: "without end".to_owned(),
                });
            }
            text.push_str(&line);
            text.push('\n');
        }
    }

    fn expect(&mut self, word: &str, doing: &'static str) -> Result<()> {
        let line = self.line(doing)?;
        if line == word {
            return Ok(());
        }
        let output: String = line.chars().take(80).collect();
        Err(Error::Answer { host: self.name.clone(), doing, output })
    }
}
