//! Bytes written to the backing device today, because disks wear out.
//!
//! A round is charged with its maximum before it starts, and corrected afterwards: a crash in between counts too much, never too little.

use eke_model::units::Bytes;
use serde::{Deserialize, Serialize};

/// One page of a zram limit: 4 KiB for any page size of the machine (Documentation/admin-guide/blockdev/zram.rst).
pub const UNIT: u64 = 4096;

/// A clock that shows an earlier day (2026-01-01, before there was an eke) is not set yet: boards without a clock of their own begin in 1970.
const SET_FROM_DAY: u64 = 20_454;

/// A day and its written bytes. The default is an empty ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ledger {
    /// Days since 1970 (UTC).
    pub day: u64,
    /// Bytes written, or charged to a running round.
    pub written: Bytes,
}

impl Ledger {
    /// The rest of the budget on `day`, in whole units of [`UNIT`]; 0 if more than the budget is written already.
    pub fn left_units(&self, day: u64, budget: Bytes) -> u64 {
        budget.saturating_sub(self.on(day).written).0 / UNIT
    }

    /// The ledger on `day`: a new day starts at 0. A clock that was set back does not renew the budget: written bytes count until the next day of
    /// the corrected clock. One that is not set yet changes nothing.
    #[must_use]
    pub fn on(self, day: u64) -> Self {
        match day {
            _ if day > self.day => Self { day, written: Bytes(0) },
            _ if day < SET_FROM_DAY && self.day >= SET_FROM_DAY => self,
            _ => Self { day, written: self.written },
        }
    }

    /// The ledger of a clock that was ahead, on the corrected clock's day; `None` if it was not. Without it nothing is written until that date: a full
    /// ledger gets no round that would correct it.
    #[must_use]
    pub fn set_back(self, day: u64) -> Option<Self> {
        (self.day > day && (day >= SET_FROM_DAY || self.day < SET_FROM_DAY)).then_some(Self { day, ..self })
    }

    /// The ledger before a round on `day` that may write `units`.
    #[must_use]
    pub fn charged(self, day: u64, units: u64) -> Self {
        let ledger = self.on(day);
        Self { written: ledger.written + bytes(units), ..ledger }
    }

    /// The ledger after that round, which wrote `units` instead of the `charged` ones.
    #[must_use]
    pub fn settled(self, charged: u64, units: u64) -> Self {
        Self { written: self.written.saturating_sub(bytes(charged)) + bytes(units), ..self }
    }
}

fn bytes(units: u64) -> Bytes {
    Bytes(units.saturating_mul(UNIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Bytes = Bytes::mib(1);

    #[test]
    fn a_day_has_its_budget_and_the_next_has_its_own() {
        let ledger = Ledger::default().charged(10, 200);
        assert_eq!(ledger.left_units(10, BUDGET), 56);
        assert_eq!(ledger.settled(200, 50).left_units(10, BUDGET), 206);
        assert_eq!(ledger.left_units(11, BUDGET), 256);
        assert_eq!(ledger.settled(200, 250).left_units(10, BUDGET), 6, "more than it may write counts, too");
    }

    /// ChromeOS' GetWritebackDailyLimit subtracts unsigned numbers before it takes the larger of that and 0.
    #[test]
    fn more_written_than_allowed_leaves_nothing_rather_than_almost_everything() {
        let ledger = Ledger { day: 10, written: Bytes::mib(500) };
        assert_eq!(ledger.left_units(10, BUDGET), 0);
        assert_eq!(ledger.left_units(10, Bytes(0)), 0);
        assert_eq!(Ledger::default().charged(10, u64::MAX).left_units(10, BUDGET), 0);
        assert_eq!(Ledger::default().settled(u64::MAX, 0).written, Bytes(0));
    }

    #[test]
    fn a_clock_that_goes_back_renews_nothing_and_does_not_lock_for_ever() {
        let today = SET_FROM_DAY + 10;
        let ledger = Ledger::default().charged(99_999, 256);
        assert_eq!(ledger.left_units(today, BUDGET), 0);
        let corrected = ledger.set_back(today).unwrap();
        assert_eq!((corrected.left_units(today, BUDGET), corrected.set_back(today)), (0, None));
        assert_eq!(corrected.left_units(today + 1, BUDGET), 256);
    }

    /// A board without a clock of its own would have had the day's budget at each start.
    #[test]
    fn a_clock_that_is_not_set_yet_renews_nothing_when_it_is() {
        let today = SET_FROM_DAY + 10;
        let ledger = Ledger::default().charged(today, 200);
        assert_eq!((ledger.set_back(0), ledger.left_units(0, BUDGET)), (None, 56));
        let more = ledger.charged(0, 50);
        assert_eq!((more.left_units(today, BUDGET), more.left_units(today + 1, BUDGET)), (6, 256));
        let never_set = Ledger::default().charged(40, 256);
        assert_eq!(never_set.set_back(0).unwrap().left_units(1, BUDGET), 256, "a board that is never set");
        assert_eq!(Ledger::default().charged(0, 200).left_units(0, BUDGET), 56, "the very first start");
    }

    proptest::proptest! {
        #[test]
        fn rounds_within_what_is_left_stay_within_the_budget(
            budget in 0u64..(1 << 30),
            rounds in proptest::collection::vec((0u64..100_000, 0.0f64..=1.0, 0u64..2), 1..60),
        ) {
            let (mut ledger, mut day, mut written) = (Ledger::default(), 100, 0);
            for (overrides, really, days) in rounds {
                if days > 0 {
                    (day, written) = (day + days, 0);
                }
                let units = overrides.min(ledger.left_units(day, Bytes(budget)));
                ledger = ledger.charged(day, units);
                let done = (units as f64 * really) as u64;
                ledger = ledger.settled(units, done);
                written += done * UNIT;
                proptest::prop_assert!(written <= budget);
            }
        }
    }
}
