//! A group that waits at its own memory limit: its tasks stall, and with few others so does everything that the kernel counts. That is no shortage of the machine. Pure.

use crate::level::{Level, is_rush, level};
use crate::shortage::Shortage;

/// The kernel takes memory from the whole machine if it scans more than this share of RAM a second: then all wait for the same.
const SCANS: f64 = 0.01;
/// The groups are read this often.
const AGAIN_MS: u64 = 1_000;
/// The stalls of the last five seconds are still those of a group that waited until now.
const FADES_MS: u64 = 5_000;

/// From poll to poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnLimit {
    asked_ms: Option<u64>,
    waits_ms: Option<u64>,
}

impl OwnLimit {
    /// Whether the present stalls are those of a group at its own limit. `ask`: whether one waits there; it reads all groups.
    pub fn explains(&mut self, shortage: &Shortage, now_ms: u64, ask: impl FnOnce() -> bool) -> bool {
        let is_stall = level(shortage) == Level::Stalled && !is_rush(shortage);
        if !is_stall || shortage.scanned_share >= SCANS {
            return false;
        }
        let within = |at: Option<u64>, ms: u64| at.is_some_and(|at| now_ms.saturating_sub(at) < ms);
        if !within(self.asked_ms, AGAIN_MS) {
            self.asked_ms = Some(now_ms);
            if ask() {
                self.waits_ms = Some(now_ms);
            }
        }
        within(self.waits_ms, FADES_MS)
    }
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

    #[test]
    fn a_group_at_its_own_limit_explains_stalls_and_nothing_else() {
        let explains = |shortage: Shortage| OwnLimit::default().explains(&shortage, 0, || true);
        assert!(explains(stalled()));
        assert!(!OwnLimit::default().explains(&stalled(), 0, || false));
        assert!(!explains(Shortage { scanned_share: 0.1, ..stalled() }), "the whole machine is short");
        assert!(!explains(Shortage { room_share: 0.01, ..stalled() }), "exhausted");
        let rush = Shortage { room_share: 0.2, left_s: Some(1.0), ..stalled() };
        assert!(!explains(rush), "something grows");
        let calm = Shortage { available_share: 0.6, ..stalled() };
        assert!(!OwnLimit::default().explains(&calm, 0, || panic!("groups are read only in a stall")));
    }

    #[test]
    fn groups_are_read_once_a_second_and_a_stall_fades() {
        let (mut limit, mut asked) = (OwnLimit::default(), 0);
        let mut explains = |ms, waits| {
            limit.explains(&stalled(), ms, || {
                asked += 1;
                waits
            })
        };
        assert!(explains(0, true) && explains(250, true) && explains(1_000, false) && explains(4_750, false));
        assert!(!explains(6_000, false));
        assert_eq!(asked, 4);
    }
}
