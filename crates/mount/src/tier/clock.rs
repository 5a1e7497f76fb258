//! What time it is, as an argument.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A clock.
pub trait Clock: Send + Sync {
    /// For how long something took.
    fn now(&self) -> Instant;

    /// Nanoseconds since 1970, as files' times are.
    fn wall_ns(&self) -> i128;
}

/// The machine's.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn wall_ns(&self) -> i128 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        i128::try_from(since.as_nanos()).unwrap_or(i128::MAX)
    }
}
