//! What grows and is never ended: what is protected, and shared memory, which is in no process. Pure.

use std::collections::BTreeSet;

use eke_model::process::ProcessId;
use eke_model::units::Bytes;

use crate::growth::Growth;
use crate::level::Level;
use crate::process::Process;
use crate::target::{Target, least, members};
use crate::unit::Unit;

/// So long after one program was ended in vain, no other is ended for the same cause, and the message is not repeated.
const REST_MS: u64 = 600_000;

/// What to act upon, and what is to blame rather than it and never ended.
#[derive(Debug)]
pub struct Choice {
    /// The target.
    pub target: Target,
    /// What grew.
    pub grower: Option<Grower>,
    /// Whether that is shared memory which the target maps. A file of tmpfs stays when it ends.
    pub maps_it: bool,
}

impl Choice {
    /// The target maps shared memory that grew.
    pub fn mapper(target: Target, growth: &Growth) -> Self {
        let grower = Grower { what: What::Shared, grown: growth.of_no_process() };
        Self { target, grower: Some(grower), maps_it: true }
    }
}

/// What grew within the last minute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grower {
    /// Which.
    pub what: What,
    /// By how much.
    pub grown: Bytes,
}

/// What the guard cannot end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Protected processes together; the one that grew most, and its user.
    Protected(ProcessId, u32),
    /// Shared memory and files of tmpfs.
    Shared,
}

/// What is to blame rather than the target: it does not grow itself, and the protected processes and shared memory grew by a share of RAM that
/// counts, and by more than its unit. The larger part of both is returned.
pub fn grower(
    target: &Target,
    units: &[Unit<'_>],
    processes: &[Process],
    protected: &BTreeSet<u32>,
    growth: &Growth,
    ram: Bytes,
) -> Option<Grower> {
    let grew = |p: &Process| growth.within_a_minute(p);
    let kept = || processes.iter().filter(|p| protected.contains(&p.id.pid));
    let by_kept: Bytes = kept().map(grew).sum();
    let shared = growth.of_no_process();
    let of_unit: Bytes = members(target, units).map(grew).sum();
    let grown = by_kept + shared;
    if target.grows || grown < least(ram) || grown <= of_unit {
        return None;
    }
    let most = kept().max_by_key(|p| grew(p)).filter(|_| by_kept >= shared);
    Some(match most {
        Some(most) => Grower { what: What::Protected(most.id, most.user), grown: by_kept },
        None => Grower { what: What::Shared, grown: shared },
    })
}

/// What was done beside what grows and is never ended, from poll to poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Restraint {
    ended_ms: Option<u64>,
    said_ms: Option<u64>,
}

impl Restraint {
    /// Whether the target is left alone: until memory is exhausted, unless it maps what grows, and after one was ended in vain. Its end gives back
    /// what it had, once; the next ones would follow for nothing.
    pub fn spares(&self, choice: &Choice, level: Level, now_ms: u64) -> bool {
        let is_early = level < Level::Exhausted && !choice.maps_it;
        choice.grower.is_some() && (is_early || within(self.ended_ms, now_ms))
    }

    /// A target was ended while this grew.
    pub fn note_end(&mut self, grower: Option<&Grower>, now_ms: u64) {
        if grower.is_some() {
            self.ended_ms = Some(now_ms);
        }
    }

    /// Whether it is time to say why nothing is done.
    pub fn says(&mut self, now_ms: u64) -> bool {
        let is_new = !within(self.said_ms, now_ms);
        if is_new {
            self.said_ms = Some(now_ms);
        }
        is_new
    }
}

fn within(at_ms: Option<u64>, now_ms: u64) -> bool {
    at_ms.is_some_and(|at| now_ms.saturating_sub(at) < REST_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::growth::History;
    use crate::process::tests::process;
    use crate::shortage::InUse;
    use crate::target::choose;
    use crate::unit::units;

    const RAM: Bytes = Bytes::mib(1024);

    fn found(then: [u64; 2], now: [u64; 2]) -> (Option<Grower>, Target) {
        found_beside(then, now, 0)
    }

    /// A compiler below apt and an editor, with their sizes half a minute ago and now, and shared memory that grew by `shared`.
    fn found_beside(then: [u64; 2], now: [u64; 2], shared: u64) -> (Option<Grower>, Target) {
        let of = |[compiler, editor]: [u64; 2]| {
            let compiler = Process { user: 0, is_roots: true, ..process(5, "cc1plus", compiler) };
            [compiler, process(6, "editor", editor)]
        };
        let mut history = History::default();
        history.push(0, &of(then), InUse::default());
        history.push(20_000, &of(now), InUse::default());
        let (all, protected) = (of(now), BTreeSet::from([5]));
        let by_both: u64 = then.into_iter().zip(now).map(|(then, now)| now.saturating_sub(then)).sum();
        let in_use = InUse { shared: Bytes::mib(by_both + shared), ..InUse::default() };
        let growth = history.growth(&all, in_use, 30_000);
        let units = units(&all, &protected, &growth, least(RAM));
        let target = choose(&units, &growth, &BTreeSet::new(), RAM).unwrap();
        (grower(&target, &units, &all, &protected, &growth, RAM), target)
    }

    #[test]
    fn a_protected_program_is_to_blame_only_if_it_grew_more() {
        let (grower, target) = found([100, 200], [500, 200]);
        assert_eq!(target.name, "editor");
        let compiler = ProcessId { pid: 5, start_ticks: 5 };
        assert_eq!(grower, Some(Grower { what: What::Protected(compiler, 0), grown: Bytes::mib(400) }));
        assert_eq!(found([500, 200], [500, 200]).0, None, "nothing grows");
        assert_eq!(found([480, 200], [500, 200]).0, None, "less than counts");
        assert_eq!(found([400, 100], [500, 400]).0, None, "the target grew more within the minute");
    }

    #[test]
    fn shared_memory_that_grows_is_to_blame_as_a_protected_program_is() {
        let grower = |then, now, shared| found_beside(then, now, shared).0;
        let shared = |mib| Some(Grower { what: What::Shared, grown: Bytes::mib(mib) });
        assert_eq!(grower([100, 200], [100, 200], 300), shared(300));
        assert_eq!(grower([100, 200], [200, 200], 300), shared(300), "the larger part of both");
        assert_eq!(grower([100, 200], [100, 200], 30), None, "less than counts");
        assert_eq!(grower([100, 100], [100, 400], 200), None, "the editor grew more within the minute");
    }

    #[test]
    fn beside_a_protected_program_that_grows_one_is_ended_when_memory_is_exhausted_and_no_other() {
        let (grower, target) = found([100, 200], [500, 200]);
        let (beside, itself, maps) = (
            Choice { target: target.clone(), grower, maps_it: false },
            Choice { target: target.clone(), grower: None, maps_it: false },
            Choice { target, grower, maps_it: true },
        );
        let mut restraint = Restraint::default();
        assert_eq!(
            [&beside, &itself, &maps].map(|choice| restraint.spares(choice, Level::Stalled, 0)),
            [true, false, false]
        );
        assert!(!restraint.spares(&beside, Level::Exhausted, 0));
        restraint.note_end(None, 1_000);
        assert!(!restraint.spares(&beside, Level::Exhausted, 2_000), "that one had grown");
        restraint.note_end(grower.as_ref(), 3_000);
        assert!(restraint.spares(&beside, Level::Exhausted, 5_000), "the first was in vain");
        assert!(
            restraint.spares(&maps, Level::Exhausted, 5_000),
            "what it mapped stayed, or another one begins anew"
        );
        assert!(!restraint.spares(&itself, Level::Exhausted, 5_000), "a program that grows itself is ended");
        assert!(!restraint.spares(&beside, Level::Exhausted, 700_000));
        assert_eq!([4_000, 5_000, 700_000].map(|ms| restraint.says(ms)), [true, false, true]);
    }
}
