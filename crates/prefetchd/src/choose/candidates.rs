//! Candidate programs, and the reads chosen for them.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use crate::request::ReadRequest;
use eke_prefetch_model::choose::{
    Allowance, Candidate, Choice, ChoiceOutcome, Environment, Limits, Occasion, PlannedRead, choose,
};
use eke_prefetch_model::file_set::{FileSet, Kind};
use eke_prefetch_model::predict::Chance;
use eke_prefetch_model::program::{Program, ProgramId};
use eke_prefetch_store::{Decision, LearnedProgram};

/// The most candidates: further ones would save little, and each costs a read of the store.
const MOST: usize = 12;
/// The same at a log-in, after which many programs start.
const MOST_IN_SESSION: usize = 64;
/// So many times as many are probed: those with resident files need no read.
const PROBED: usize = 2;

fn most(occasion: Occasion) -> usize {
    if occasion == Occasion::Session { MOST_IN_SESSION } else { MOST }
}

/// The learned programs of `chances` of whose launches the most seconds can be saved, probably. Improbable ones come last. `cold`
/// gives how long a cold launch takes, and `None` for a program that is no candidate.
pub(crate) fn likely(
    chances: &[Chance],
    occasion: Occasion,
    mut cold: impl FnMut(ProgramId) -> Option<Duration>,
) -> Vec<Chance> {
    // A program whose launch was never cold may still wait a little. For an improbable one nothing would be read.
    let least = Limits::of(0).least_probability;
    let seconds = |chance: &Chance, cold: Duration| match chance.probability {
        probability if probability < least => 0.0,
        probability => probability * cold.as_secs_f64().max(0.01),
    };
    let known = chances.iter().filter_map(|chance| Some((seconds(chance, cold(chance.program)?), *chance)));
    let mut known: Vec<(f64, Chance)> = known.collect();
    known.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    known.into_iter().map(|(_, chance)| chance).take(PROBED * most(occasion)).collect()
}

/// So many learned launches show how long a cold one takes, whatever they read.
const LEARNED: u32 = 3;

/// The learned launch of a program that read most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Coldest {
    /// How long it took.
    pub took: Duration,
    /// The bytes that it read from the disk.
    pub read_bytes: u64,
    /// The bytes of the program's file set.
    pub set_bytes: u64,
    /// The number of learned launches.
    pub learned: u32,
}

impl Coldest {
    /// Whether users hardly notice a cold launch. Reading for it would save less than the least saving that counts. A launch of unknown duration is none, and
    /// neither is one that was half warm, until others have shown the same.
    pub fn is_brief(&self) -> bool {
        let was_cold = self.read_bytes.saturating_mul(2) >= self.set_bytes;
        let is_known = !self.took.is_zero() && (was_cold || self.learned >= LEARNED);
        is_known && is_soon_over(self.took)
    }
}

/// Whether a launch of this duration is brief, if it was cold.
pub(crate) fn is_soon_over(took: Duration) -> bool {
    took.as_secs_f64() < Limits::of(0).least_saved_s
}

/// The first of the programs that have files to read, as many as may be candidates.
pub(crate) fn first(missing: Vec<Chance>, occasion: Occasion) -> Vec<Chance> {
    missing.into_iter().take(most(occasion)).collect()
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
    pub fn choose(&self, disks: &dyn Environment, limits: &Limits) -> Choice {
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

    /// The read requests of a choice for a user, in its order.
    pub fn requests(&self, choice: &Choice, user: u32) -> Vec<ReadRequest> {
        let own = OwnPaths::new(self.known.iter().map(|(_, known)| &known.record.program));
        let request = |read: &PlannedRead| {
            let mut request = ReadRequest {
                path: read.path.clone(),
                kind: read.kind,
                stamp: read.stamp,
                pages: read.pages.clone(),
                user,
                is_own: own.has(&read.path),
            };
            if request.kind == Kind::Device && request.stamp.dev == 0 {
                // Learned before this boot or by its UUID, so the device may have another number now. /dev is in memory, so stat(2) answers at once.
                request.stamp.dev = rustix::fs::stat(&request.path).map_or(0, |stat| stat.st_rdev);
            }
            request
        };
        choice.reads.iter().map(request).collect()
    }

    /// The read requests in the order of first use, for a program that waits for them.
    pub fn requests_by_use(&self, mut choice: Choice, user: u32) -> Vec<ReadRequest> {
        choice.reads.sort_by_key(|read| read.position);
        self.requests(&choice, user)
    }
}

/// What is the programs' own: the directories of their executables, with the files in them, and their scripts.
pub(crate) struct OwnPaths<'a>(HashSet<&'a Path>);

impl<'a> OwnPaths<'a> {
    /// Those of these programs.
    pub fn new(programs: impl Iterator<Item = &'a Program>) -> Self {
        Self(
            programs
                .flat_map(|program| [program.exe.parent(), program.script.as_deref()])
                .flatten()
                .collect(),
        )
    }

    /// Whether this path is one of them.
    pub fn has(&self, path: &Path) -> bool {
        self.0.contains(path) || path.parent().is_some_and(|parent| self.0.contains(parent))
    }
}

/// Whether the budget left out reads that would have saved time.
pub(crate) fn is_short(choice: &Choice) -> bool {
    choice.outcomes.iter().any(|(_, outcome)| match outcome {
        ChoiceOutcome::NoRoom { .. } => true,
        ChoiceOutcome::Chosen { bytes, of_bytes, .. } => bytes < of_bytes,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programs_own_files_are_it_its_script_and_what_lies_beside_it() {
        let program = Program { exe: "/home/u/app/app".into(), script: Some("/home/u/main.py".into()) };
        let own = OwnPaths::new([&program].into_iter());
        for (file, expected) in [
            ("/home/u/app/app", true),
            ("/home/u/app/lib.so", true),
            ("/home/u/main.py", true),
            ("/home/u/.viminfo", false),
            ("/usr/lib/libc.so", false),
        ] {
            assert_eq!(own.has(Path::new(file)), expected, "{file}");
        }
    }

    #[test]
    fn a_launch_that_nobody_notices_is_brief() {
        let of = |ms, read_bytes, learned| {
            Coldest { took: Duration::from_millis(ms), read_bytes, set_bytes: 100, learned }.is_brief()
        };
        let cold = |ms| of(ms, 100, 1);
        assert_eq!([0, 1, 149, 150, 9000].map(cold), [false, true, true, false, false]);
        for (read_bytes, learned, expected) in
            [(0, 1, false), (49, 1, false), (50, 1, true), (49, 2, false), (0, 3, true)]
        {
            assert_eq!(
                of(100, read_bytes, learned),
                expected,
                "{read_bytes} of 100 bytes, {learned} launches"
            );
        }
        assert!(!of(200, 0, 3));
    }

    #[test]
    fn a_long_launch_comes_before_likelier_short_ones() {
        let chance = |id, probability| Chance { program: ProgramId(id), probability };
        let mut chances: Vec<Chance> = (0..100).map(|id| chance(id, 0.5)).collect();
        chances.push(chance(200, 0.3));
        chances.push(chance(300, 0.9));
        chances.extend((400..430).map(|id| chance(id, 0.01)));
        let cold = |id: ProgramId| match id.0 {
            200 => Some(Duration::from_secs(10)),
            300 => None,
            400.. => Some(Duration::from_secs(30)),
            _ => Some(Duration::from_millis(50)),
        };
        let likely = likely(&chances, Occasion::Ahead, cold);
        assert_eq!((likely[0].program, likely.len()), (ProgramId(200), PROBED * MOST));
        assert!(likely.iter().all(|chance| chance.program != ProgramId(300)), "it is not known");
        assert!(likely.iter().all(|chance| chance.program.0 < 400), "they are improbable");
        assert_eq!(first(likely, Occasion::Ahead).len(), MOST);
        assert_eq!(super::likely(&chances, Occasion::Session, cold).len(), PROBED * MOST_IN_SESSION);
    }
}
