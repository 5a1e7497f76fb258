//! Reading before a program starts.

use std::time::Duration;

use eke_model::units::Bytes;

use super::disks::Disks;
use super::library::Library;
use super::say::{Said, name};
use crate::fetch::{Ended, Fetch, Want};
use eke_prefetch_model::choose::{Allowance, Candidate, Choice, Limits, Occasion, Verdict, choose};
use eke_prefetch_model::file_set::{FileSet, Kind};
use eke_prefetch_model::learn::Now;
use eke_prefetch_model::predict::Chance;
use eke_prefetch_model::program::ProgramId;
use eke_prefetch_store::{Decision, Known};

/// Programs whose files are weighed against each other: those after these are improbable, and each takes a look into the store.
const MOST_CANDIDATES: usize = 12;
/// Without any event the choice is made again after this, for what was driven out meanwhile.
pub(super) const AGAIN: Duration = Duration::from_secs(600);

/// A fetch ahead that is under way.
#[derive(Debug)]
pub(super) struct Going {
    pub fetch: Fetch,
    /// For whom, with the bytes chosen.
    pub programs: Vec<(ProgramId, String, u64)>,
    /// The budget left out something that would have saved time.
    pub was_short: bool,
}

/// The likeliest of `chances` that are known.
pub(super) fn likely(chances: &[Chance], library: &Library) -> Vec<Chance> {
    let known = chances.iter().filter(|chance| library.known(chance.program).is_some());
    known.take(MOST_CANDIDATES).copied().collect()
}

/// What is decided about a program whose files are in memory.
pub(super) fn is_there(chance: &Chance, occasion: Occasion, allowance: Allowance, at_s: i64) -> Decision {
    Decision {
        at_s,
        occasion,
        program: chance.program,
        probability: chance.probability,
        verdict: Verdict::AlreadyThere,
        limit: allowance.limit,
        after: None,
    }
}

/// Programs with their files, and how probable each is.
#[derive(Debug, Default)]
pub(super) struct Weighed {
    known: Vec<(f64, Known)>,
}

impl Weighed {
    /// These programs.
    pub fn of(chances: &[Chance], library: &mut Library, now: Now) -> Self {
        let known = chances.iter().filter_map(|c| Some((c.probability, library.program(c.program, now)?)));
        Self { known: known.collect() }
    }

    /// A program that has started, or is asked for.
    pub fn certain(known: impl IntoIterator<Item = Known>) -> Self {
        Self { known: known.into_iter().map(|known| (1.0, known)).collect() }
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

    /// What was decided about each, for `explain`.
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
            Verdict::Chosen { bytes, .. } => Some((*id, name(&known.record.program), *bytes)),
            _ => None,
        })
        .collect()
    }
}

/// What is to be fetched, in the order of the choice.
pub(super) fn wants(choice: &Choice) -> Vec<Want> {
    let want = |wish: &eke_prefetch_model::choose::Wish| {
        let mut want =
            Want { path: wish.path.clone(), kind: wish.kind, stamp: wish.stamp, pages: wish.pages.clone() };
        if want.kind == Kind::Device && want.stamp.dev == 0 {
            // Learned before this boot; the device has its number anew. What is in /dev is memory, and answers.
            want.stamp.dev = rustix::fs::stat(&want.path).map_or(0, |stat| stat.st_rdev);
        }
        want
    };
    choice.wishes.iter().map(want).collect()
}

/// The same in the order of first use, for a program that waits for them.
pub(super) fn wants_by_use(mut choice: Choice) -> Vec<Want> {
    choice.wishes.sort_by_key(|wish| wish.place);
    wants(&choice)
}

/// Did the budget leave out what would have saved time?
pub(super) fn is_short(choice: &Choice) -> bool {
    choice.verdicts.iter().any(|(_, verdict)| match verdict {
        Verdict::NoRoom { .. } => true,
        Verdict::Chosen { bytes, of_bytes, .. } => bytes < of_bytes,
        _ => false,
    })
}

/// What is said of one that is over.
pub(super) fn said(going: &Going) -> Said {
    let report = going.fetch.report();
    Said::Ahead {
        programs: going.programs.iter().map(|(_, name, _)| name.clone()).collect(),
        bytes: report.fetched_bytes,
        there_bytes: report.there_bytes,
        ended: report
            .ended
            .filter(|ended| *ended != Ended::Done)
            .map(|ended| format!("{ended:?}").to_lowercase()),
    }
}
