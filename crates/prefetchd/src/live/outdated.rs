//! Programs that nobody starts any more: removed ones, and earlier versions of others. They would take the places and the budget of those in use.

use super::process::Process;
use eke_prefetch_model::learn::Now;
use eke_prefetch_model::program::{Program, ProgramId};

/// The most programs that are remembered as superseded.
const MOST_SUPERSEDED: usize = 256;

impl Process<'_> {
    /// A program is forgotten in the store: nothing else knows it, either.
    pub(super) fn forget(&mut self, id: ProgramId) {
        self.running.forget(id);
        self.predictor.forget(id);
        self.wrappers.forget(id);
        self.effect.forget(id);
        self.probe.forget(id);
        self.drop_reads(id);
    }

    /// What was read ahead for a program is neither used nor wasted.
    pub(super) fn drop_reads(&mut self, id: ProgramId) {
        self.reads.outcomes.remove(&id);
        self.pending.started(id);
        self.reads.ahead.as_mut().and_then(|going| going.take_read(id));
    }

    /// A launch of a program was learned. Its earlier versions go, and it inherits their habits, unless somebody uses both.
    pub(super) fn supersede(&mut self, new: &Program, now: Now) {
        let id = new.id();
        for old in self.library.other_versions(new, now) {
            if self.running.runs_for_anyone(old) || [id, old].iter().any(|one| self.superseded.contains(one))
            {
                continue;
            }
            if self.superseded.len() >= MOST_SUPERSEDED {
                self.superseded.clear();
            }
            self.superseded.insert(old);
            self.predictor.rename(old, id);
            self.library.forget(old);
            self.forget(old);
        }
    }
}
