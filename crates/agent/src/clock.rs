//! The time, as a trait: tests have their own.

use std::time::{SystemTime, UNIX_EPOCH};

/// What the agent asks about the time.
pub trait Clock {
    /// Milliseconds that never go backwards.
    fn monotonic_ms(&self) -> u64;
    /// Seconds since 1970, as the machine believes.
    fn unix_s(&self) -> u64;
}

/// The machine's clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn monotonic_ms(&self) -> u64 {
        eke_linux::read::monotonic_ms()
    }

    fn unix_s(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
    }
}
