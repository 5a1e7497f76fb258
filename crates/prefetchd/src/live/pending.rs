//! What was read ahead and has not been asked for yet. Pure.

use std::collections::BTreeMap;

use eke_prefetch_model::program::ProgramId;
use eke_prefetch_store::{After, DecisionId};

/// What was read for nobody within so long was wasted: twice the horizon of the predictions.
const WASTED_AFTER_S: i64 = 1_200;

/// What was read for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Read {
    at_s: i64,
    bytes: u64,
    decision: Option<DecisionId>,
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct Pending {
    reads: BTreeMap<ProgramId, Read>,
}

impl Pending {
    /// So much was chosen of a program at this time; what was chosen before adds up, and waits no longer for that.
    pub fn chosen(&mut self, program: ProgramId, bytes: u64, at_s: i64, decision: Option<DecisionId>) {
        let read = self.reads.entry(program).or_insert(Read { at_s, bytes: 0, decision });
        read.bytes = read.bytes.max(bytes);
        read.at_s = at_s;
        read.decision = decision.or(read.decision);
    }

    /// What was chosen of it is in memory, and would be chosen again.
    pub fn is_chosen_still(&mut self, program: ProgramId, at_s: i64) {
        self.reads.entry(program).and_modify(|read| read.at_s = at_s);
    }

    /// A program started: what was read for it is used. What is known of a file set is what its launches used.
    pub fn started(&mut self, program: ProgramId) -> Option<(u64, Option<DecisionId>)> {
        self.reads.remove(&program).map(|read| (read.bytes, read.decision))
    }

    /// What nobody has asked for in time. A clock that was set back makes nothing old.
    pub fn wasted(&mut self, now_s: i64) -> Vec<(u64, Option<DecisionId>)> {
        let old = |read: &Read| now_s.saturating_sub(read.at_s) > WASTED_AFTER_S;
        let wasted: Vec<ProgramId> =
            self.reads.iter().filter(|(_, read)| old(read)).map(|(id, _)| *id).collect();
        wasted.into_iter().filter_map(|id| self.started(id)).collect()
    }
}

/// As the store keeps it.
pub(super) fn used(bytes: u64) -> After {
    After { used_bytes: bytes, wasted_bytes: 0 }
}

/// The same of waste.
pub(super) fn wasted(bytes: u64) -> After {
    After { used_bytes: 0, wasted_bytes: bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_used_once_or_wasted() {
        let mut pending = Pending::default();
        let (a, b) = (ProgramId(1), ProgramId(2));
        pending.chosen(a, 100, 1_000, None);
        pending.chosen(a, 60, 1_500, None);
        pending.chosen(b, 7, 1_000, None);
        assert_eq!(pending.wasted(2_200), []);
        assert_eq!(pending.wasted(2_300), [(7, None)]);
        assert_eq!(pending.started(a), Some((100, None)));
        assert_eq!(pending.started(a), None);
        pending.chosen(a, 1, 5_000, None);
        pending.is_chosen_still(b, 5_000);
        pending.is_chosen_still(a, 6_000);
        assert_eq!(pending.wasted(6_300), [], "what is wanted still is not wasted yet");
        assert_eq!(pending.wasted(10), [], "the clock went back");
    }
}
