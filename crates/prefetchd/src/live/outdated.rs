//! Programs that nobody starts any more: removed ones, and earlier versions of others. They would take the places and the budget of those in use.

use super::notice::Notice;
use super::process::Process;
use super::removed::AFTER;
use eke_prefetch_model::file_set::Kind;
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

    /// Forgets the programs that were found to be removed, and looks for others, once the boot is over. A prediction wakes no disk, and neither does this.
    pub(super) fn forget_removed(&mut self, now: Now) {
        let Some(missed) = self.removed.take_missed() else { return };
        missed.iter().for_each(|id| self.library.forget(*id));
        missed.iter().for_each(|id| self.forget(*id));
        if !missed.is_empty() {
            let programs = missed.len();
            let what = format!("eke forgets {programs} learned programs: they are no files, or were removed");
            self.notices.push(Notice::Trouble { what });
        }
        if now.mono.saturating_sub(self.began) < AFTER {
            return;
        }
        let left = self.removed.left.take().unwrap_or_else(|| self.library.all(now));
        let awake = self.disks.awake(now.mono);
        self.removed.look_up(self.root, left, |program| {
            let paths = [Some(&program.exe), program.script.as_ref()];
            paths.iter().flatten().all(|path| awake.have(path, Kind::File))
        });
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
