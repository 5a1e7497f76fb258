//! Injected faults: which requests fail. Pure.

use std::ops::Range;

use eke_statistics::Random;
use rustix::io::Errno;

use super::model::Request;

/// The faults in force.
#[derive(Debug, Clone, Default)]
pub(super) struct Faults {
    ranges: Vec<(Range<u64>, Errno)>,
    chance: Option<Chance>,
}

/// Random failures, the same for the same seed and order of requests.
#[derive(Debug, Clone)]
struct Chance {
    probability: f64,
    errno: Errno,
    random: Random,
}

impl Faults {
    /// Makes requests that touch `range` fail.
    pub(super) fn range(&mut self, range: Range<u64>, errno: Errno) {
        self.ranges.push((range, errno));
    }

    /// Makes each request fail with `probability`.
    pub(super) fn chance(&mut self, probability: f64, seed: u64, errno: Errno) {
        self.chance = Some(Chance { probability, errno, random: Random::new(seed) });
    }

    /// The error with which a request fails, if it does. A flush touches no range.
    pub(super) fn error_of(&mut self, request: &Request) -> Option<Errno> {
        let end = request.offset.saturating_add(request.length);
        let touched = |r: &Range<u64>| request.offset < r.end && r.start < end;
        let by_range = self.ranges.iter().find(|(range, _)| touched(range)).map(|(_, errno)| *errno);
        let by_chance = self.chance.as_mut().and_then(Chance::error_of);
        by_range.or(by_chance)
    }
}

impl Chance {
    fn error_of(&mut self) -> Option<Errno> {
        let share = self.random.share();
        (share < self.probability).then_some(self.errno)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Kind;

    fn read(offset: u64, length: u64) -> Request {
        Request { kind: Kind::Read, offset, length }
    }

    #[test]
    fn requests_that_touch_the_range_fail() {
        let mut faults = Faults::default();
        faults.range(4096..8192, Errno::IO);
        for (request, fails) in [
            (read(0, 4096), false),
            (read(0, 4097), true),
            (read(4096, 1), true),
            (read(8191, 1), true),
            (read(8192, 4096), false),
            (read(0, 1 << 20), true),
            (Request { kind: Kind::Flush, offset: 0, length: 0 }, false),
        ] {
            assert_eq!(faults.error_of(&request).is_some(), fails, "{request:?}");
        }
    }

    #[test]
    fn failures_have_their_probability_and_repeat_with_the_seed() {
        let run = |seed| {
            let mut faults = Faults::default();
            faults.chance(0.1, seed, Errno::IO);
            (0..10_000).map(|_| faults.error_of(&read(0, 1)).is_some()).collect::<Vec<_>>()
        };
        let struck = run(7).iter().filter(|s| **s).count();
        assert!((850..1150).contains(&struck), "{struck}");
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }

    #[test]
    fn never_and_always_are_exact() {
        for (probability, all) in [(0.0, false), (1.0, true)] {
            let mut faults = Faults::default();
            faults.chance(probability, 1, Errno::IO);
            assert!((0..1000).all(|_| faults.error_of(&read(0, 1)).is_some() == all));
        }
    }
}
