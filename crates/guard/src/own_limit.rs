//! A group that waits at its own memory limit: its tasks stall, and with few others so does everything that the kernel counts. That is no
//! shortage of the machine. A user can have such a group at any time, so it must not hide a shortage. Pure.

use eke_linux::cgroup::limit::AtLimit;
use eke_model::units::Bytes;

use crate::escalate::{ASK_ROOM, THRASHES};
use crate::level::{Level, is_rush, level};
use crate::shortage::Shortage;

/// The kernel takes memory from the whole machine if it scans more than this share of RAM a second, or these bytes: then all wait for the same.
const SCANS: f64 = 0.01;
const SCANS_BYTES: Bytes = Bytes::mib(8);
/// The groups are read this often, once two readings have been compared.
const AGAIN_MS: u64 = 1_000;
/// The stalls of the last five seconds are still those of a group that waited until now. Readings further apart are not compared.
const FADES_MS: u64 = 5_000;
/// All tasks of the group wait for this share of the time from one reading to the next.
const STALLS: f64 = 0.2;
/// With little room a group explains stalls for so long, and again after a pause as long.
const SHORT_MS: u64 = 60_000;

/// What was read of the groups at their limits.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Reading {
    at_ms: u64,
    groups: Vec<AtLimit>,
    /// Whether it was compared with one before it.
    is_compared: bool,
}

/// From poll to poll.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnLimit {
    last: Option<Reading>,
    waits_ms: Option<u64>,
    /// Since when stalls with little room were explained, and when they last were.
    short_ms: Option<[u64; 2]>,
}

impl OwnLimit {
    /// Whether the present stalls are those of a group at its own limit. `read`: reads all groups at their limits. Two readings show
    /// whether one waits there.
    pub fn explains(
        &mut self,
        shortage: &Shortage,
        now_ms: u64,
        read: impl FnOnce() -> Vec<AtLimit>,
    ) -> bool {
        let is_stall = level(shortage) == Level::Stalled && !is_rush(shortage);
        if !is_stall || is_the_machines(shortage) {
            return false;
        }
        let is_fresh = |last: &Reading| last.is_compared && now_ms.saturating_sub(last.at_ms) < AGAIN_MS;
        if !self.last.as_ref().is_some_and(is_fresh) {
            self.compare(now_ms, read());
        }
        let waits = self.waits_ms.is_some_and(|at| now_ms.saturating_sub(at) < FADES_MS);
        waits && (shortage.room_share >= ASK_ROOM || self.is_brief(now_ms))
    }

    fn compare(&mut self, at_ms: u64, groups: Vec<AtLimit>) {
        let before = self.last.take().filter(|last| at_ms.saturating_sub(last.at_ms) < FADES_MS);
        if before.as_ref().is_some_and(|before| waits(before, &groups, at_ms)) {
            self.waits_ms = Some(at_ms);
        }
        self.last = Some(Reading { at_ms, groups, is_compared: before.is_some() });
    }

    /// Whether stalls with little room have been explained for a short time only. Somebody could let a group wait for ever.
    fn is_brief(&mut self, now_ms: u64) -> bool {
        let within = |at: u64| now_ms.saturating_sub(at) < SHORT_MS;
        let since = self.short_ms.filter(|[_, last]| within(*last)).map_or(now_ms, |[since, _]| since);
        self.short_ms = Some([since, now_ms]);
        within(since)
    }
}

/// Whether the kernel takes memory from everybody, or programs read back what it took.
fn is_the_machines(shortage: &Shortage) -> bool {
    shortage.scanned_share >= SCANS || shortage.scanned >= SCANS_BYTES || shortage.read_back_share >= THRASHES
}

/// Whether a group reached its own limit again since the reading `before`, and all its tasks waited. cgroup v1 does not count their waiting.
fn waits(before: &Reading, groups: &[AtLimit], now_ms: u64) -> bool {
    let least_us = now_ms.saturating_sub(before.at_ms) as f64 * 1e3 * STALLS;
    let waited = |then: &AtLimit, now: &AtLimit| match (then.stalled_us, now.stalled_us) {
        (Some(then_us), Some(now_us)) => now_us.saturating_sub(then_us) as f64 >= least_us,
        (None, None) => true,
        _ => false,
    };
    let is_waiting = |now: &AtLimit| {
        let mut same = before.groups.iter().filter(|then| then.group == now.group);
        same.any(|then| now.reached > then.reached && waited(then, now))
    };
    groups.iter().any(is_waiting)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stalled() -> Shortage {
        Shortage {
            stalled_1s: 0.9,
            stalled_5s: 0.9,
            room_share: 0.3,
            available_share: 0.2,
            resident_share: 0.9,
            ..Shortage::default()
        }
    }

    /// A group that has reached its limit `reached` times and stalled for so long.
    fn group(reached: u64, stalled_ms: impl Into<Option<u64>>) -> Vec<AtLimit> {
        let stalled_us = stalled_ms.into().map(|ms| ms * 1_000);
        vec![AtLimit { group: "box".into(), reached, stalled_us }]
    }

    /// Whether a group that waits all the time explains this, after a second.
    fn explains(shortage: Shortage) -> bool {
        let mut limit = OwnLimit::default();
        !limit.explains(&shortage, 0, || group(1, 0)) && limit.explains(&shortage, 1_000, || group(2, 1_000))
    }

    #[test]
    fn a_group_at_its_own_limit_explains_stalls_and_nothing_else() {
        assert!(explains(stalled()));
        assert!(!explains(Shortage { room_share: 0.01, ..stalled() }), "exhausted");
        let rush = Shortage { room_share: 0.2, left_s: Some(1.0), ..stalled() };
        assert!(!explains(rush), "something grows");
        let calm = Shortage { available_share: 0.6, ..stalled() };
        assert!(!OwnLimit::default().explains(&calm, 0, || panic!("groups are read only in a stall")));
    }

    #[test]
    fn what_the_kernel_takes_from_all_is_explained_by_no_group() {
        assert!(
            !explains(Shortage { scanned_share: 0.01, scanned: Bytes::mib(1), ..stalled() }),
            "100 MiB of RAM"
        );
        assert!(
            !explains(Shortage { scanned_share: 0.001, scanned: Bytes::mib(8), ..stalled() }),
            "8 GiB of RAM"
        );
        assert!(explains(Shortage { scanned_share: 0.009, scanned: Bytes::mib(7), ..stalled() }));
        assert!(!explains(Shortage { read_back_share: 0.02, ..stalled() }), "programs thrash");
    }

    #[test]
    fn only_a_group_that_reaches_its_limit_again_and_waits_there_explains() {
        for (then, now, explained) in [
            (group(5, 0), group(6, 400), true),
            (group(5, 0), group(5, 400), false),
            (group(5, 0), group(6, 100), false),
            (group(5, None), group(6, None), true),
            (group(5, None), group(5, None), false),
            (group(5, None), group(6, 400), false),
            (Vec::new(), group(6, 400), false),
        ] {
            let mut limit = OwnLimit::default();
            assert!(!limit.explains(&stalled(), 0, || then.clone()));
            assert_eq!(limit.explains(&stalled(), 1_000, || now.clone()), explained, "{then:?} {now:?}");
        }
        let mut limit = OwnLimit::default();
        limit.explains(&stalled(), 0, || group(5, 0));
        assert!(!limit.explains(&stalled(), 60_000, || group(6, 60_000)), "some time in a minute");
    }

    #[test]
    fn groups_are_read_once_a_second_and_a_stall_fades() {
        let (mut limit, mut read) = (OwnLimit::default(), 0);
        let mut explains = |ms, reached| {
            limit.explains(&stalled(), ms, || {
                read += 1;
                group(reached, ms)
            })
        };
        assert!(!explains(0, 1) && explains(250, 2), "compared at once");
        assert!(explains(500, 3) && explains(1_250, 2) && explains(5_000, 2));
        assert!(!explains(6_000, 2));
        assert_eq!(read, 5);
    }

    /// The times in seconds, of ten minutes, at which a group that waits all the time explains the stalls.
    fn explained_s(room_share: f64, is_stalled: impl Fn(u64) -> bool) -> Vec<u64> {
        let mut limit = OwnLimit::default();
        let short = Shortage { room_share, ..stalled() };
        let mut explains =
            |s: &u64| is_stalled(*s) && limit.explains(&short, s * 1_000, || group(*s, s * 1_000));
        (0..600).filter(&mut explains).collect()
    }

    #[test]
    fn a_user_with_a_group_at_its_limit_does_not_switch_the_guard_off() {
        assert_eq!(explained_s(0.1, |_| true), (1..61).collect::<Vec<_>>());
        assert_eq!(explained_s(0.2, |_| true).len(), 599, "programs can still get memory");
        let with_pauses = explained_s(0.1, |s| s % 30 > 3);
        assert!(with_pauses.iter().all(|s| *s < 70), "{with_pauses:?}");
        let again = explained_s(0.1, |s| !(100..=200).contains(&s));
        assert!(again.contains(&230) && !again.contains(&300), "{again:?}");
    }
}
