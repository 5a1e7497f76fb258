//! The clock, as a trait.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use eke_prefetch_model::learn::Now;

/// A clock.
pub trait Clock {
    /// The current time on both clocks.
    fn now(&self) -> Now;

    /// How long the machine has been suspended since its boot.
    fn suspended(&self) -> Duration;

    /// The local time zone's offset from UTC in seconds.
    fn east_of_utc_s(&self) -> i64;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Now {
        let real = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now {
            mono: since_boot(ClockId::Monotonic),
            real_ns: i64::try_from(real.as_nanos()).unwrap_or(i64::MAX),
        }
    }

    fn suspended(&self) -> Duration {
        since_boot(ClockId::Boottime).saturating_sub(since_boot(ClockId::Monotonic))
    }

    #[expect(unsafe_code, reason = "the local time has no safe wrapper in the crates that are here")]
    #[allow(clippy::useless_conversion, reason = "time_t and long have 32 bits on 32-bit machines")]
    fn east_of_utc_s(&self) -> i64 {
        let now_s = libc::time_t::try_from(unix_s(self.now())).unwrap_or(libc::time_t::MAX);
        // SAFETY: all-zero bytes are a valid `tm` (integers and a pointer that is not read).
        let mut local: libc::tm = unsafe { std::mem::zeroed() };
        // SAFETY: both point to values that live through the call.
        let done = unsafe { libc::localtime_r(&now_s, &mut local) };
        if done.is_null() { 0 } else { i64::from(local.tm_gmtoff) }
    }
}

fn since_boot(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

/// Seconds since 1970.
pub(super) fn unix_s(now: Now) -> i64 {
    now.real_ns / 1_000_000_000
}
