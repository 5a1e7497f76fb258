//! Candidate programs, and the reads chosen for them.

use super::disks::Disks;
use crate::request::ReadRequest;
use eke_prefetch_model::choose::{Allowance, Candidate, Choice, ChoiceOutcome, Limits, Occasion, choose};
use eke_prefetch_model::file_set::{FileSet, Kind};
use eke_prefetch_model::predict::Chance;
use eke_prefetch_model::program::ProgramId;
use eke_prefetch_store::{Decision, LearnedProgram};

/// The most candidates: further ones are improbable, and each costs a read of the store.
const MOST: usize = 12;

/// The likeliest programs of `chances` that were learned.
pub(crate) fn likely(chances: &[Chance], mut is_known: impl FnMut(ProgramId) -> bool) -> Vec<Chance> {
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
        outcome: ChoiceOutcome::AlreadyResident,
        limit: allowance.limit,
        usage: None,
    }
}

/// The decision about a start that is left alone.
pub(crate) fn left_alone(program: ProgramId, at_s: i64) -> Decision {
    Decision {
        at_s,
        occasion: Occasion::Exec,
        program,
        probability: 1.0,
        outcome: ChoiceOutcome::LeftAlone,
        limit: None,
        usage: None,
    }
}

/// Learned programs with their probabilities.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    known: Vec<(f64, LearnedProgram)>,
}

impl Candidates {
    /// Programs with their probabilities.
    pub fn new(known: impl IntoIterator<Item = (f64, LearnedProgram)>) -> Self {
        Self { known: known.into_iter().collect() }
    }

    /// Programs that have started or were named.
    pub fn certain(known: impl IntoIterator<Item = LearnedProgram>) -> Self {
        Self::new(known.into_iter().map(|known| (1.0, known)))
    }

    /// The file set of each.
    pub fn sets(&self) -> impl Iterator<Item = (ProgramId, &FileSet)> {
        self.known.iter().map(|(_, known)| (known.record.id(), &known.set))
    }

    /// Chooses reads within `limits`.
    pub fn choose(&self, disks: &Disks, limits: &Limits) -> Choice {
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
        choose(&candidates, disks, limits)
    }

    /// The decision about each program, for `explain`.
    pub fn decisions(
        &self,
        choice: &Choice,
        occasion: Occasion,
        allowance: Allowance,
        at_s: i64,
    ) -> Vec<Decision> {
        let of = |(at, (program, outcome)): (usize, &(ProgramId, ChoiceOutcome))| Decision {
            at_s,
            occasion,
            program: *program,
            probability: self.known.get(at).map_or(0.0, |(probability, _)| *probability),
            outcome: *outcome,
            limit: allowance.limit,
            usage: None,
        };
        choice.outcomes.iter().enumerate().map(of).collect()
    }

    /// The ids, names and bytes of the programs to read.
    pub fn chosen(&self, choice: &Choice) -> Vec<(ProgramId, String, u64)> {
        let both = self.known.iter().zip(&choice.outcomes);
        both.filter_map(|((_, known), (id, outcome))| match outcome {
            ChoiceOutcome::Chosen { bytes, .. } => Some((*id, known.record.program.to_string(), *bytes)),
            _ => None,
        })
        .collect()
    }
}

/// The read requests of a choice for a user, in its order.
pub(crate) fn requests(choice: &Choice, user: u32) -> Vec<ReadRequest> {
    let request = |read: &eke_prefetch_model::choose::PlannedRead| {
        let mut request = ReadRequest {
            path: read.path.clone(),
            kind: read.kind,
            stamp: read.stamp,
            pages: read.pages.clone(),
            user,
        };
        if request.kind == Kind::Device && request.stamp.dev == 0 {
            // Learned before this boot, so the device may have another number now. /dev is in memory, so stat(2) answers at once.
            request.stamp.dev = rustix::fs::stat(&request.path).map_or(0, |stat| stat.st_rdev);
        }
        request
    };
    choice.reads.iter().map(request).collect()
}

/// The read requests in the order of first use, for a program that waits for them.
pub(crate) fn requests_by_use(mut choice: Choice, user: u32) -> Vec<ReadRequest> {
    choice.reads.sort_by_key(|read| read.position);
    requests(&choice, user)
}

/// Whether the budget left out reads that would have saved time.
pub(crate) fn is_short(choice: &Choice) -> bool {
    choice.outcomes.iter().any(|(_, outcome)| match outcome {
        ChoiceOutcome::NoRoom { .. } => true,
        ChoiceOutcome::Chosen { bytes, of_bytes, .. } => bytes < of_bytes,
        _ => false,
    })
}
