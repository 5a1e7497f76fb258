//! Clocks, passed as arguments.

use std::cell::OnceCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A clock.
pub trait Clock: Send + Sync {
    /// Monotonic time, to measure durations.
    fn now(&self) -> Instant;

    /// Nanoseconds since 1970, as in inodes.
    fn wall_ns(&self) -> i128;

    /// How long this thread has so far been ready to run without a processor. Zero where that is unknown.
    fn waited(&self) -> Duration {
        Duration::ZERO
    }
}

/// A measurement under way.
#[derive(Debug, Clone, Copy)]
pub struct Timer {
    at: Instant,
    waited: Duration,
}

impl Timer {
    /// Starts now.
    pub fn start(clock: &dyn Clock) -> Self {
        Self { at: clock.now(), waited: clock.waited() }
    }

    /// The time since the start, minus the time that this thread waited for a processor. So a disk or a codec does not seem
    /// slow because the machine is busy. Call it on the same thread.
    pub fn elapsed(self, clock: &dyn Clock) -> Duration {
        let waited = clock.waited().saturating_sub(self.waited);
        clock.now().saturating_duration_since(self.at).saturating_sub(waited)
    }
}

/// The machine's clocks.
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

    /// The second number of `/proc/thread-self/schedstat` (Documentation/scheduler/sched-stats.rst; kernels with
    /// CONFIG_SCHED_INFO).
    fn waited(&self) -> Duration {
        thread_local!(static SCHEDSTAT: OnceCell<Option<File>> = const { OnceCell::new() });
        let mut text = [0; 64];
        let read = SCHEDSTAT.with(|file| {
            let file = file.get_or_init(|| File::open("/proc/thread-self/schedstat").ok());
            file.as_ref().map_or(0, |file| file.read_at(&mut text, 0).unwrap_or(0))
        });
        run_delay(&text[..read]).unwrap_or_default()
    }
}

fn run_delay(schedstat: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(schedstat).ok()?;
    Some(Duration::from_nanos(text.split_ascii_whitespace().nth(1)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;

    #[test]
    fn the_wait_is_the_second_number() {
        assert_eq!(run_delay(b"3187421 52011 17\n"), Some(Duration::from_nanos(52_011)));
        assert_eq!([run_delay(b""), run_delay(b"1 x 3"), run_delay(b"1")], [None; 3]);
    }

    /// In every 15 seconds its thread waits 10.
    struct Busy(AtomicU64, Instant);

    impl Clock for Busy {
        fn now(&self) -> Instant {
            self.1 + Duration::from_secs(15 * self.0.load(Relaxed))
        }

        fn wall_ns(&self) -> i128 {
            0
        }

        fn waited(&self) -> Duration {
            Duration::from_secs(10 * self.0.load(Relaxed))
        }
    }

    #[test]
    fn waiting_for_a_processor_does_not_count() {
        let clock = Busy(AtomicU64::new(3), Instant::now());
        let timer = Timer::start(&clock);
        clock.0.store(5, Relaxed);
        assert_eq!(timer.elapsed(&clock), Duration::from_secs(10));
    }
}
