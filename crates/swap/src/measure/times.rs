//! Clocks, and times as percentiles.

use std::time::{Duration, Instant};

use eke_model::units::Nanos;
use eke_statistics::sample::quantile_sorting;

use super::rounds::Clock;

/// The machine's clock.
pub(crate) struct Monotonic(Instant);

impl Monotonic {
    pub(crate) fn started() -> Self {
        Self(Instant::now())
    }
}

impl Clock for Monotonic {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn busy(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
    }
}

/// Nanoseconds since `start`.
pub(crate) fn since_ns(start: Instant) -> u64 {
    Nanos::from(start.elapsed()).0
}

/// The median and the 99th percentile; 0 without values.
pub(crate) fn p50_p99(times_ns: &mut [u64]) -> (Nanos, Nanos) {
    (
        Nanos(quantile_sorting(times_ns, 0.5).unwrap_or(0)),
        Nanos(quantile_sorting(times_ns, 0.99).unwrap_or(0)),
    )
}
