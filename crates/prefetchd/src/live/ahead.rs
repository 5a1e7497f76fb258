//! The fetch for predicted launches.

use std::collections::BTreeMap;

use super::notice::Notice;
use crate::read::{FetchEnd, FetchReport};
use crate::schedule::Fetch;
use eke_prefetch_model::program::ProgramId;
use eke_prefetch_store::DecisionId;

/// A running fetch ahead.
#[derive(Debug)]
pub(super) struct Ahead {
    pub fetch: Fetch,
    /// The programs with the chosen bytes.
    pub programs: Vec<(ProgramId, String, u64)>,
    /// Whether the budget left out reads that would have saved time.
    pub was_short: bool,
    /// Whose start was predicted.
    pub account: u32,
    requested_bytes: u64,
    /// What was chosen for the programs that have not started since.
    chosen: BTreeMap<ProgramId, u64>,
    decisions: BTreeMap<ProgramId, DecisionId>,
}

/// What was read ahead for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReadAhead {
    pub program: ProgramId,
    pub bytes: u64,
    /// Whether anything was missing: otherwise the start is a warm one, with or without eke.
    pub was_fetched: bool,
    pub decision: Option<DecisionId>,
}

impl Ahead {
    /// A fetch of this many bytes, with the programs that they were chosen for.
    pub fn new(
        fetch: Fetch,
        requested_bytes: u64,
        programs: Vec<(ProgramId, String, u64)>,
        was_short: bool,
    ) -> Self {
        let chosen = programs.iter().map(|(id, _, bytes)| (*id, *bytes)).collect();
        Self { fetch, programs, was_short, account: 0, requested_bytes, chosen, decisions: BTreeMap::new() }
    }

    /// The decisions that the fetch follows, and whose start was predicted.
    pub fn with(self, decisions: BTreeMap<ProgramId, DecisionId>, account: u32) -> Self {
        Self { decisions, account, ..self }
    }

    /// What is read by now for a program. It counts once.
    pub fn take_read(&mut self, program: ProgramId) -> Option<ReadAhead> {
        let report = self.fetch.report();
        let (share, was_fetched) = (share(&report, self.requested_bytes), report.fetched_bytes > 0);
        let bytes = (self.chosen.remove(&program)? as f64 * share) as u64;
        let decision = self.decisions.get(&program).copied();
        (bytes > 0).then_some(ReadAhead { program, bytes, was_fetched, decision })
    }

    /// The same for all programs that have not started since.
    pub fn take_all_read(&mut self) -> Vec<ReadAhead> {
        let programs: Vec<ProgramId> = self.chosen.keys().copied().collect();
        programs.into_iter().filter_map(|program| self.take_read(program)).collect()
    }

    /// The notice of the finished fetch.
    pub fn event(&self) -> Notice {
        let report = self.fetch.report();
        Notice::Ahead {
            programs: self.programs.iter().map(|(_, name, _)| name.clone()).collect(),
            bytes: report.fetched_bytes,
            resident_bytes: report.resident_bytes,
            ended: report
                .ended
                .filter(|ended| *ended != FetchEnd::Done)
                .map(|ended| format!("{ended:?}").to_lowercase()),
        }
    }
}

/// The share of the requested bytes that are in memory. Programs share reads, so each counts as read by the same share. Directories have no bytes.
fn share(report: &FetchReport, requested_bytes: u64) -> f64 {
    if requested_bytes == 0 {
        return if report.directories > 0 { 1.0 } else { 0.0 };
    }
    let read_bytes = report.fetched_bytes.saturating_add(report.resident_bytes);
    (read_bytes as f64 / requested_bytes as f64).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_fetched_or_resident_counts_as_read() {
        let read = |fetched_bytes, resident_bytes| FetchReport {
            fetched_bytes,
            resident_bytes,
            ..FetchReport::default()
        };
        assert_eq!(share(&read(0, 0), 4096), 0.0);
        assert_eq!(share(&read(1024, 1024), 4096), 0.5);
        assert_eq!(share(&read(4096, 4096), 4096), 1.0, "read again after memory was short");
        assert_eq!(share(&read(0, 0), 0), 0.0);
        assert_eq!(share(&FetchReport { directories: 1, ..read(0, 0) }, 0), 1.0);
    }
}
