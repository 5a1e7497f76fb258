//! The fetch ahead of predicted launches.

use super::notice::Notice;
use crate::read::Ended;
use crate::schedule::Fetch;
use eke_prefetch_model::program::ProgramId;

/// A fetch ahead that is under way.
#[derive(Debug)]
pub(super) struct Ahead {
    pub fetch: Fetch,
    /// The programs, with the bytes chosen.
    pub programs: Vec<(ProgramId, String, u64)>,
    /// The budget left out something that would have saved time.
    pub was_short: bool,
}

impl Ahead {
    /// The event of one that is over.
    pub fn event(&self) -> Notice {
        let report = self.fetch.report();
        Notice::Ahead {
            programs: self.programs.iter().map(|(_, name, _)| name.clone()).collect(),
            bytes: report.fetched_bytes,
            resident_bytes: report.resident_bytes,
            ended: report
                .ended
                .filter(|ended| *ended != Ended::Done)
                .map(|ended| format!("{ended:?}").to_lowercase()),
        }
    }
}
