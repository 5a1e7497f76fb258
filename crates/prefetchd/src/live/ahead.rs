//! The fetch for predicted launches.

use super::notice::Notice;
use crate::read::FetchEnd;
use crate::schedule::Fetch;
use eke_prefetch_model::program::ProgramId;

/// A running fetch ahead.
#[derive(Debug)]
pub(super) struct Ahead {
    pub fetch: Fetch,
    /// The programs with the chosen bytes.
    pub programs: Vec<(ProgramId, String, u64)>,
    /// Whether the budget left out reads that would have saved time.
    pub was_short: bool,
}

impl Ahead {
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
