//! How many sessions are added at a look. Pure.

/// After so many looks in a row with a request that waits, a session is added although one has work for the processor: it could be one that
/// computes without end.
const PATIENCE: u32 = 16;

/// What a look at the sessions found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    /// A request waits that no session takes.
    pub waits: bool,
    /// A session runs or waits for a processor.
    pub one_runs: bool,
}

/// The number of sessions, and what counts for more.
#[derive(Debug)]
pub(super) struct Growth {
    most: usize,
    /// Looks in a row at which more sessions would only have waited for the processor, too.
    postponed: u32,
}

impl Growth {
    /// For at most so many sessions.
    pub(super) fn to(most: usize) -> Self {
        Self { most, postponed: 0 }
    }

    /// How many sessions are added to `count`: as many again if all wait for something else than the processor.
    pub(super) fn more(&mut self, count: usize, look: Look) -> usize {
        let room = self.most.saturating_sub(count);
        if look.waits && look.one_runs && self.postponed < PATIENCE {
            self.postponed += 1;
            return 0;
        }
        self.postponed = 0;
        match look {
            Look { waits: false, .. } => 0,
            Look { one_runs: true, .. } => room.min(1),
            Look { one_runs: false, .. } => count.min(room),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Look = Look { waits: false, one_runs: false };
    const BLOCKED: Look = Look { waits: true, one_runs: false };
    const BUSY: Look = Look { waits: true, one_runs: true };

    #[test]
    fn sessions_double_while_all_of_them_wait_for_a_disk() {
        let mut growth = Growth::to(12);
        let mut count = 2;
        let mut step = |look| {
            count += growth.more(count, look);
            count
        };
        assert_eq!([IDLE, BLOCKED, IDLE, BLOCKED, BLOCKED, BLOCKED].map(&mut step), [2, 4, 4, 8, 12, 12]);
    }

    #[test]
    fn a_busy_processor_adds_none_unless_it_stays_so() {
        let mut growth = Growth::to(128);
        let busy_for =
            |growth: &mut Growth, looks: u32| (0..looks).map(|_| growth.more(2, BUSY)).sum::<usize>();
        for _ in 0..10 {
            assert_eq!((busy_for(&mut growth, PATIENCE), growth.more(2, IDLE)), (0, 0));
        }
        assert_eq!(busy_for(&mut growth, 3 * (PATIENCE + 1)), 3);
        assert_eq!(growth.more(2, BLOCKED), 2);
    }
}
