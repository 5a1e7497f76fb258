//! A second reader on the disk: it reads single blocks at random offsets at a fixed rate, past the page cache, and reports the time of
//! each.

use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use eke_statistics::random::Random;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// The size of a block; O_DIRECT needs no larger alignment (open(2)).
pub const BLOCK: usize = 4096;

/// What to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The block device.
    pub device: PathBuf,
    /// Its size, in bytes.
    pub bytes: u64,
    /// The least interval between the beginnings of two reads.
    pub every_ms: u64,
    /// The seed of the offsets.
    pub seed: u64,
}

/// One read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Read {
    /// Its beginning, in seconds of CLOCK_MONOTONIC.
    pub at_s: f64,
    /// Its time, in milliseconds.
    pub ms: f64,
}

/// The clock of [`Read::at_s`].
pub fn now_s() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// Reads until its input ends. Each read is a line of JSON on `out`.
///
/// # Errors
/// A sentence: the device cannot be read.
pub fn run(spec: &Spec, input: &impl AsFd, out: &mut dyn Write) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("cannot read {}: {e}", spec.device.display());
    let mut options = std::fs::OpenOptions::new();
    let file = options.read(true).custom_flags(libc::O_DIRECT).open(&spec.device).map_err(failed)?;
    // Memory of twice the size has an aligned block in it.
    let mut memory = vec![0_u8; 2 * BLOCK];
    let from = memory.as_ptr().align_offset(BLOCK);
    let blocks = (spec.bytes / BLOCK as u64).max(1);
    let mut random = Random::new(spec.seed);
    loop {
        let (at_s, begun) = (now_s(), Instant::now());
        let place = random.below(blocks) * BLOCK as u64;
        file.read_exact_at(&mut memory[from..from + BLOCK], place).map_err(failed)?;
        let read = Read { at_s, ms: begun.elapsed().as_secs_f64() * 1e3 };
        let line = serde_json::to_string(&read).map_err(|e| e.to_string())?;
        writeln!(out, "{line}").and_then(|()| out.flush()).map_err(failed)?;
        let pause = Duration::from_millis(spec.every_ms).saturating_sub(begun.elapsed());
        if is_over(input, pause) {
            return Ok(());
        }
    }
}

/// Waits, at most until the input ends.
fn is_over(input: &impl AsFd, pause: Duration) -> bool {
    let timeout = Timespec { tv_sec: pause.as_secs() as i64, tv_nsec: i64::from(pause.subsec_nanos()) };
    let mut fds = [PollFd::new(input, PollFlags::IN)];
    poll(&mut fds, Some(&timeout)).is_ok() && !fds[0].revents().is_empty()
}
