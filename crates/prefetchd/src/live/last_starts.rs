//! Which starts repeat earlier ones: those of a loop, a build or a script drown what a person does once an hour. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use eke_prefetch_model::program::ProgramId;

/// The most starts that are remembered.
const MOST: usize = 4_096;

/// When each account started each program last, by CLOCK_MONOTONIC.
#[derive(Debug, Default)]
pub(super) struct LastStarts(BTreeMap<(u32, ProgramId), Duration>);

impl LastStarts {
    /// An account starts a program; returns whether it did so within this time before.
    pub fn is_repeated(&mut self, account: u32, program: ProgramId, now: Duration, within: Duration) -> bool {
        let is_recent = |at: &Duration| now.saturating_sub(*at) < within;
        if self.0.len() >= MOST {
            self.0.retain(|_, at| is_recent(at));
        }
        if self.0.len() >= MOST {
            self.0.clear();
        }
        self.0.insert((account, program), now).is_some_and(|before| is_recent(&before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHIN: Duration = Duration::from_secs(600);

    #[test]
    fn a_loop_starts_its_program_once() {
        let (mut starts, s) = (LastStarts::default(), Duration::from_secs);
        let mut is_repeated = |account, at_s| starts.is_repeated(account, ProgramId(1), s(at_s), WITHIN);
        let of_loop: Vec<bool> = (0..900).map(|n| is_repeated(1000, n)).collect();
        assert!(!of_loop[0] && of_loop[1..].iter().all(|is| *is), "it lasts longer than ten minutes");
        assert!(!is_repeated(1001, 900), "another account");
        assert!(is_repeated(1000, 1498) && !is_repeated(1000, 2098));
    }

    #[test]
    fn it_is_bounded() {
        let mut starts = LastStarts::default();
        (0..10_000).for_each(|id| _ = starts.is_repeated(1000, ProgramId(id), Duration::ZERO, WITHIN));
        assert!(starts.0.len() <= MOST);
    }
}
