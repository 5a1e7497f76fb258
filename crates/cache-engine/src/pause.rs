//! How long nobody connects after a failure. Pure.

use std::time::{Duration, Instant};

/// The pause after the first failure, and the longest.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);

/// Pauses between attempts to connect. Each is a quarter longer than the one before, until an engine answers: so they grow to a quarter of the time that
/// it is away, and its return is seen within as much.
#[derive(Debug)]
pub struct Pause {
    until: Option<Instant>,
    next: Duration,
}

impl Default for Pause {
    fn default() -> Self {
        Self { until: None, next: FIRST }
    }
}

impl Pause {
    /// Whether it is time for an attempt.
    pub fn is_over(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| now >= until)
    }

    /// An attempt is made now. `chance` (0 to 1) shortens the pause after it by up to a half: machines that lost an engine at the same moment
    /// shall not return at the same moment.
    pub fn begin(&mut self, now: Instant, chance: f64) {
        self.until = Some(now + self.next.mul_f64(1.0 - chance.clamp(0.0, 1.0) / 2.0));
        self.next = (self.next * 5 / 4).min(LONGEST);
    }

    /// The engine answered.
    pub fn answered(&mut self) {
        self.next = FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_an_engine_answers() {
        let (mut pause, begin) = (Pause::default(), Instant::now());
        let mut length = |chance: f64, answered: bool| {
            if answered {
                pause.answered();
            }
            pause.begin(begin, chance);
            (1..=60_000).find(|ms| pause.is_over(begin + Duration::from_millis(*ms)))
        };
        assert_eq!(
            [length(0.0, false), length(0.0, false), length(0.0, false)],
            [Some(500), Some(625), Some(782)]
        );
        assert_eq!([length(1.0, true), length(1.0, false)], [Some(250), Some(313)]);
        assert_eq!((0..30).map(|_| length(0.0, false)).last(), Some(Some(30_000)));
    }
}
