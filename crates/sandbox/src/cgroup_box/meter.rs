//! A box's budget: its next limit, and whether it has been over budget for too long.

use std::time::Duration;

use eke_model::units::{Bytes, MIB};

/// The longest time over budget.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// The lowest limit as a share of the budget: with less a box only moves pages in and out.
const FLOOR_SHARE: f64 = 1.0 / 8.0;
/// A limit is lowered by this share of the budget more than needed.
const SPARE_SHARE: f64 = 1.0 / 256.0;

/// What to do with the box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// Let it run.
    Keep,
    /// It was over budget for longer than [`PATIENCE`].
    Kill,
}

/// The state of one box. Times are since any fixed instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meter {
    budget: Bytes,
    limit: Bytes,
    over_since: Option<Duration>,
    peak: Bytes,
}

impl Meter {
    /// A box whose limit is its whole budget.
    pub fn new(budget: Bytes) -> Self {
        Self { budget, limit: budget, over_since: None, peak: Bytes(0) }
    }

    /// The limit that leaves room for `charge` within the budget, and a little more, so that not every swapped page moves it. `None` if the
    /// present limit still does.
    pub fn next_limit(&self, charge: Bytes) -> Option<Bytes> {
        let room = self.budget.saturating_sub(charge);
        let spare = self.budget.scaled(SPARE_SHARE);
        let good = room.saturating_sub(spare + spare).max(self.floor())..=room.max(self.floor());
        let next = if charge.0 == 0 { self.budget } else { room.saturating_sub(spare).max(self.floor()) };
        (next != self.limit && !(good.contains(&self.limit) && charge.0 > 0)).then_some(next)
    }

    /// The lowest limit.
    pub fn floor(&self) -> Bytes {
        self.budget.scaled(FLOOR_SHARE).max(Bytes(MIB)).min(self.budget)
    }

    /// Notes that the kernel accepted this limit.
    pub fn limited(&mut self, limit: Bytes) {
        self.limit = limit;
    }

    /// Updates the peak.
    pub fn note(&mut self, usage: Bytes, charge: Bytes) {
        self.peak = self.peak.max(usage + charge);
    }

    /// Judges by the usage at `now`, after the limit was lowered for this `charge`, which began at `begun`. What is over budget then, the kernel
    /// could not swap out.
    pub fn judge(&mut self, begun: Duration, now: Duration, usage: Bytes, charge: Bytes) -> Judgement {
        self.note(usage, charge);
        if usage + charge <= self.budget {
            self.over_since = None;
            return Judgement::Keep;
        }
        let since = *self.over_since.get_or_insert(begun);
        if now.saturating_sub(since) > PATIENCE { Judgement::Kill } else { Judgement::Keep }
    }

    /// The highest sum of usage and charge.
    pub fn peak(&self) -> Bytes {
        self.peak
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn the_limit_makes_room_for_the_charge() {
        let mut m = Meter::new(Bytes::mib(256));
        assert_eq!(m.next_limit(Bytes(0)), None);
        assert_eq!(m.next_limit(Bytes::mib(40)), Some(Bytes::mib(215)));
        m.limited(Bytes::mib(215));
        for near in [39, 40, 41] {
            assert_eq!(m.next_limit(Bytes::mib(near)), None, "{near}");
        }
        assert_eq!(m.next_limit(Bytes::mib(42)), Some(Bytes::mib(213)));
        assert_eq!(m.next_limit(Bytes::mib(10)), Some(Bytes::mib(245)));
        assert_eq!(m.next_limit(Bytes::mib(500)), Some(Bytes::mib(32)), "the floor");
        assert_eq!(m.next_limit(Bytes(0)), Some(Bytes::mib(256)));
    }

    #[test]
    fn a_box_over_budget_for_more_than_a_second_is_killed() {
        let mut m = Meter::new(Bytes::mib(64));
        let mut over = |begun, now| m.judge(ms(begun), ms(now), Bytes::mib(60), Bytes::mib(10));
        assert_eq!(over(0, 10), Judgement::Keep);
        assert_eq!(over(900, 1000), Judgement::Keep);
        assert_eq!(over(1000, 1001), Judgement::Kill);
        assert_eq!(m.peak(), Bytes::mib(70));
    }

    #[test]
    fn a_refused_limit_counts_from_the_first_attempt() {
        let mut m = Meter::new(Bytes::mib(64));
        assert_eq!(m.judge(ms(100), ms(1101), Bytes::mib(60), Bytes::mib(10)), Judgement::Kill);
    }

    #[test]
    fn a_moment_within_the_budget_restarts_the_second() {
        let mut m = Meter::new(Bytes::mib(64));
        assert_eq!(m.judge(ms(0), ms(0), Bytes::mib(60), Bytes::mib(10)), Judgement::Keep);
        assert_eq!(m.judge(ms(600), ms(600), Bytes::mib(54), Bytes::mib(10)), Judgement::Keep);
        assert_eq!(m.judge(ms(1200), ms(1200), Bytes::mib(60), Bytes::mib(10)), Judgement::Keep);
        assert_eq!(m.judge(ms(2100), ms(2201), Bytes::mib(60), Bytes::mib(10)), Judgement::Kill);
    }

    /// A box of pages that compress to `percent`, all in use, on a kernel that enforces every limit.
    fn settle(data: Bytes, budget: Bytes, percent: u64) -> Option<u32> {
        let mut m = Meter::new(budget);
        let (mut limit, mut killed_at) = (budget, None);
        for tick in 0..100u32 {
            let usage = data.min(limit);
            let charge = Bytes((data.0 - usage.0) * percent / 100);
            if let Some(next) = m.next_limit(charge) {
                m.limited(next);
                limit = next;
            }
            let now = ms(u64::from(tick) * 100);
            if m.judge(now, now, data.min(limit), charge) == Judgement::Kill && killed_at.is_none() {
                killed_at = Some(tick);
            }
        }
        killed_at
    }

    #[test]
    fn three_to_one_fits_and_incompressible_does_not() {
        assert_eq!(settle(Bytes::mib(256), Bytes::mib(160), 34), None);
        let killed_at = settle(Bytes::mib(256), Bytes::mib(160), 100).unwrap();
        assert!(killed_at < 30, "killed only after {killed_at} tenths of a second");
    }

    proptest! {
        #[test]
        fn limit_and_charge_stay_in_the_budget_above_the_floor(budget in MIB..1 << 40, charges in proptest::collection::vec(0u64..1 << 41, 1..50)) {
            let mut m = Meter::new(Bytes(budget));
            let mut limit = Bytes(budget);
            for charge in charges.into_iter().map(Bytes) {
                limit = m.next_limit(charge).unwrap_or(limit);
                m.limited(limit);
                prop_assert!(limit >= m.floor() && limit.0 <= budget);
                prop_assert!(limit + charge <= Bytes(budget) || limit == m.floor());
                prop_assert_eq!(m.next_limit(charge), None);
            }
        }

        #[test]
        fn only_a_box_over_budget_all_the_last_second_is_killed(budget in MIB..1 << 30, totals in proptest::collection::vec((0u64..1 << 31, 1u64..400), 1..60)) {
            let mut m = Meter::new(Bytes(budget));
            let (mut now, mut over_for) = (ms(0), None::<Duration>);
            for (total, pause) in totals {
                now += ms(pause);
                over_for = if total > budget { Some(over_for.map_or(ms(0), |d| d + ms(pause))) } else { None };
                let judgement = m.judge(now, now, Bytes(total), Bytes(0));
                prop_assert_eq!(judgement == Judgement::Kill, over_for.is_some_and(|d| d > PATIENCE));
            }
        }
    }
}
