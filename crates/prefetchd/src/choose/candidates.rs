//! Candidate programs, and what is read of them.

use eke_model::units::Bytes;

use super::disks::Disks;
use crate::request::ReadRequest;
use eke_prefetch_model::choose::{Allowance, Candidate, Choice, Limits, Occasion, Verdict, choose};
use eke_prefetch_model::file_set::{FileSet, Kind};
use eke_prefetch_model::predict::Chance;
use eke_prefetch_model::program::ProgramId;
use eke_prefetch_store::{Decision, Known};

/// Candidates at most: later ones are improbable, and each costs a read of the store.
const MOST: usize = 12;

/// The likeliest of `chances` that are known.
pub(crate) fn likely(chances: &[Chance], is_known: impl Fn(ProgramId) -> bool) -> Vec<Chance> {
    chances.iter().filter(|chance| is_known(chance.program)).take(MOST).copied().collect()
}

/// The decision about a program whose files are resident.
pub(crate) fn already_resident(
    chance: &Chance,
    occasion: Occasion,
    allowance: Allowance,
    at_s: i64,
) -> Decision {
    Decision {
        at_s,
        occasion,
        program: chance.program,
        probability: chance.probability,
        verdict: Verdict::AlreadyResident,
        limit: allowance.limit,
        after: None,
    }
}

/// Programs with their files, and how probable each is.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    known: Vec<(f64, Known)>,
}

impl Candidates {
    /// Programs with their probabilities.
    pub fn new(known: impl IntoIterator<Item = (f64, Known)>) -> Self {
        Self { known: known.into_iter().collect() }
    }

    /// Programs that have started, or were named.
    pub fn certain(known: impl IntoIterator<Item = Known>) -> Self {
        Self::new(known.into_iter().map(|known| (1.0, known)))
    }

    /// The files of each.
    pub fn sets(&self) -> impl Iterator<Item = (ProgramId, &FileSet)> {
        self.known.iter().map(|(_, known)| (known.record.id(), &known.set))
    }

    /// Chooses within so much.
    pub fn choose(&self, disks: &Disks, budget: Bytes) -> Choice {
        let candidates: Vec<Candidate<'_>> = self
            .known
            .iter()
            .map(|(probability, known)| Candidate {
                id: known.record.id(),
                probability: *probability,
                took: Some(known.record.coldest.0).filter(|took| !took.is_zero()),
                set: &known.set,
            })
            .collect();
        choose(&candidates, disks, &Limits::of(budget.0))
    }

    /// The decision about each, for `explain`.
    pub fn decisions(
        &self,
        choice: &Choice,
        occasion: Occasion,
        allowance: Allowance,
        at_s: i64,
    ) -> Vec<Decision> {
        let of = |(at, (program, verdict)): (usize, &(ProgramId, Verdict))| Decision {
            at_s,
            occasion,
            program: *program,
            probability: self.known.get(at).map_or(0.0, |(probability, _)| *probability),
            verdict: *verdict,
            limit: allowance.limit,
            after: None,
        };
        choice.verdicts.iter().enumerate().map(of).collect()
    }

    /// Names and bytes of those that are read.
    pub fn chosen(&self, choice: &Choice) -> Vec<(ProgramId, String, u64)> {
        let both = self.known.iter().zip(&choice.verdicts);
        both.filter_map(|((_, known), (id, verdict))| match verdict {
            Verdict::Chosen { bytes, .. } => Some((*id, known.record.program.to_string(), *bytes)),
            _ => None,
        })
        .collect()
    }
}

/// The read requests of a choice, in its order.
pub(crate) fn requests(choice: &Choice) -> Vec<ReadRequest> {
    let request = |read: &eke_prefetch_model::choose::PlannedRead| {
        let mut request = ReadRequest {
            path: read.path.clone(),
            kind: read.kind,
            stamp: read.stamp,
            pages: read.pages.clone(),
        };
        if request.kind == Kind::Device && request.stamp.dev == 0 {
            // Learned before this boot; the device has its number anew. What is in /dev is memory, and answers.
            request.stamp.dev = rustix::fs::stat(&request.path).map_or(0, |stat| stat.st_rdev);
        }
        request
    };
    choice.reads.iter().map(request).collect()
}

/// The same in the order of first use, for a program that waits for them.
pub(crate) fn requests_by_use(mut choice: Choice) -> Vec<ReadRequest> {
    choice.reads.sort_by_key(|read| read.place);
    requests(&choice)
}

/// Did the budget leave out what would have saved time?
pub(crate) fn is_short(choice: &Choice) -> bool {
    choice.verdicts.iter().any(|(_, verdict)| match verdict {
        Verdict::NoRoom { .. } => true,
        Verdict::Chosen { bytes, of_bytes, .. } => bytes < of_bytes,
        _ => false,
    })
}
