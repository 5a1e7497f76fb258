//! Pages that were read ahead and not used yet. Pure. Times are of CLOCK_MONOTONIC: pages stay through a suspend, and clocks are set.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ahead::ReadAhead;
use eke_prefetch_model::program::ProgramId;
use eke_prefetch_store::{DecisionId, PageUsage};

/// Pages that are unused for this long count as wasted: twice the horizon of predictions.
const WASTED_AFTER: Duration = Duration::from_secs(1_200);

/// The bytes read for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PendingRead {
    at: Duration,
    bytes: u64,
    was_fetched: bool,
    decision: Option<DecisionId>,
}

/// All pending bytes.
#[derive(Debug, Default)]
pub(super) struct Pending {
    reads: BTreeMap<ProgramId, PendingRead>,
}

impl Pending {
    /// Bytes were read for a program. An earlier read is included and its time restarts.
    pub fn read(&mut self, read: ReadAhead, at: Duration) {
        let ReadAhead { program, bytes, was_fetched, decision } = read;
        let read = self.reads.entry(program).or_insert(PendingRead { at, bytes: 0, was_fetched, decision });
        read.bytes = read.bytes.max(bytes);
        read.was_fetched |= was_fetched;
        read.at = at;
        read.decision = decision.or(read.decision);
    }

    /// The read pages are still resident and would be chosen again.
    pub fn is_chosen_still(&mut self, program: ProgramId, at: Duration) {
        self.reads.entry(program).and_modify(|read| read.at = at);
    }

    /// Whether anything that is pending for a program was missing before it was read.
    pub fn was_fetched(&self, program: ProgramId) -> bool {
        self.reads.get(&program).is_some_and(|read| read.was_fetched)
    }

    /// A program started, so the pages read for it count as used: its file set is what its launches use.
    pub fn started(&mut self, program: ProgramId) -> Option<(u64, Option<DecisionId>)> {
        self.reads.remove(&program).map(|read| (read.bytes, read.decision))
    }

    /// Removes and returns what was not used in time.
    pub fn wasted(&mut self, now: Duration) -> Vec<(u64, Option<DecisionId>)> {
        let old = |read: &PendingRead| now.saturating_sub(read.at) > WASTED_AFTER;
        let wasted: Vec<ProgramId> =
            self.reads.iter().filter(|(_, read)| old(read)).map(|(id, _)| *id).collect();
        wasted.into_iter().filter_map(|id| self.started(id)).collect()
    }
}

/// The use, as the store records it.
pub(super) fn used(bytes: u64) -> PageUsage {
    PageUsage { used_bytes: bytes, wasted_bytes: 0 }
}

/// The same for wasted bytes.
pub(super) fn wasted(bytes: u64) -> PageUsage {
    PageUsage { used_bytes: 0, wasted_bytes: bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_read_is_used_once_or_wasted() {
        let (mut pending, s) = (Pending::default(), Duration::from_secs);
        let (a, b) = (ProgramId(1), ProgramId(2));
        let read = |program, bytes| ReadAhead { program, bytes, was_fetched: true, decision: None };
        pending.read(read(a, 100), s(1_000));
        pending.read(read(a, 60), s(1_500));
        pending.read(read(b, 7), s(1_000));
        assert_eq!(pending.wasted(s(2_200)), []);
        assert_eq!(pending.wasted(s(2_300)), [(7, None)]);
        assert_eq!(pending.started(a), Some((100, None)));
        assert_eq!(pending.started(a), None);
        pending.read(read(a, 1), s(5_000));
        pending.is_chosen_still(b, s(5_000));
        pending.is_chosen_still(a, s(6_000));
        assert_eq!(pending.wasted(s(6_300)), [], "still chosen, so not wasted yet");
    }
}
