//! The breaker of one part of the engine: after failures in a row nobody asks it for a while, then one asks for all. Pure: the time is an
//! argument, in µs.

/// Failures in a row after which nobody asks.
const FAILURES: u32 = 3;

/// The first pause and the longest, in µs. Each is a quarter longer than the one before: so they grow to a quarter of the time that the part is away,
/// and its return is seen within as much.
const PAUSE_US: (u64, u64) = (200_000, 30_000_000);

/// See the module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Breaker {
    failures: u32,
    /// The pause after the last failure; 0: it is closed.
    pause_us: u64,
    /// Until then nobody asks.
    until_us: u64,
    /// One asks for all.
    tries: bool,
}

impl Breaker {
    /// True if the caller may ask. While it is open, one caller a pause may.
    pub fn allows(&mut self, now_us: u64) -> bool {
        if self.pause_us == 0 {
            return true;
        }
        if now_us < self.until_us {
            return false;
        }
        // Others wait for the result of this one, or for a pause if there is none.
        self.until_us = now_us.saturating_add(self.pause_us);
        self.tries = true;
        true
    }

    /// An answer came in time.
    pub fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// None came, or it was late.
    pub fn failed(&mut self, now_us: u64) {
        self.failures = self.failures.saturating_add(1);
        let (first, longest) = PAUSE_US;
        let opens = self.pause_us == 0 && self.failures >= FAILURES;
        // Asks that were under way when it opened change nothing.
        if opens || std::mem::take(&mut self.tries) {
            self.pause_us = self.pause_us.saturating_add(self.pause_us / 4).clamp(first, longest);
            self.until_us = now_us.saturating_add(self.pause_us);
        }
    }

    /// True while nobody asks, and then as long again. If nobody needed that part until then, nobody knows any more how it is.
    pub fn is_open(&self, now_us: u64) -> bool {
        self.pause_us > 0 && now_us < self.until_us.saturating_add(self.pause_us)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn open(now_us: u64) -> Breaker {
        let mut breaker = Breaker::default();
        (0..FAILURES).for_each(|_| breaker.failed(now_us));
        breaker
    }

    #[test]
    fn it_opens_after_failures_in_a_row() {
        let mut breaker = Breaker::default();
        breaker.failed(0);
        breaker.failed(0);
        assert!(breaker.allows(0) && !breaker.is_open(0));
        breaker.succeeded();
        breaker.failed(0);
        breaker.failed(0);
        assert!(breaker.allows(0), "an answer in between");
        breaker.failed(0);
        assert!(!breaker.allows(1) && breaker.is_open(1));
    }

    #[test]
    fn a_part_that_nobody_needs_any_more_is_not_reported_for_ever() {
        let (mut breaker, pause) = (open(0), PAUSE_US.0);
        assert!(breaker.is_open(2 * pause - 1) && !breaker.is_open(2 * pause));
        // Where somebody needs it, each try in vain lengthens that.
        let mut now = 0;
        for _ in 0..30 {
            now = breaker.until_us + breaker.pause_us / 2;
            assert!(breaker.is_open(now) && breaker.allows(now) && breaker.is_open(now));
            breaker.failed(now);
        }
        assert!(breaker.is_open(now + PAUSE_US.1) && !breaker.is_open(now + 2 * PAUSE_US.1));
        // What was away comes back by the first ask, however late.
        assert!(breaker.allows(now + 100 * PAUSE_US.1) && !breaker.allows(now + 100 * PAUSE_US.1));
    }

    #[test]
    fn one_tries_after_each_pause_and_pauses_grow() {
        let mut breaker = open(0);
        let (mut now, mut pause) = (0, PAUSE_US.0);
        for _ in 0..30 {
            assert!(!breaker.allows(now + pause - 1), "{pause}");
            now += pause;
            assert!(breaker.allows(now) && !breaker.allows(now), "{pause}");
            breaker.failed(now);
            pause = (pause + pause / 4).min(PAUSE_US.1);
        }
        now += pause;
        assert!(breaker.allows(now));
        breaker.succeeded();
        assert!(breaker.allows(now) && breaker.allows(now));
    }

    #[test]
    fn asks_under_way_do_not_make_the_pause_longer() {
        let mut breaker = open(0);
        (0..13).for_each(|_| breaker.failed(10));
        assert!(!breaker.allows(PAUSE_US.0 - 1) && breaker.allows(PAUSE_US.0));
    }

    proptest! {
        #[test]
        fn it_asks_again_at_last(steps in prop::collection::vec((0u64..100_000_000, 0u8..3), 0..100)) {
            let (mut breaker, mut now) = (Breaker::default(), 0u64);
            for (pass, step) in steps {
                now += pass;
                match step {
                    0 => breaker.failed(now),
                    1 => breaker.succeeded(),
                    _ => drop(breaker.allows(now)),
                }
            }
            prop_assert!(breaker.allows(now + PAUSE_US.1));
        }
    }
}
