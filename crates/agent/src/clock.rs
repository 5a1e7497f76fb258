//! The clocks, as a trait, so that tests can set the time.

use std::time::{SystemTime, UNIX_EPOCH};

/// The clocks that the agent reads.
pub trait Clock {
    /// A monotonic clock in milliseconds.
    fn monotonic_ms(&self) -> u64;
    /// The system's wall clock in seconds since 1970.
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
