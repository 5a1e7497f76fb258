//! Which programs are learned again because their files have changed.

use std::collections::HashSet;
use std::iter::once;
use std::path::{Path, PathBuf};

use super::process::Process;
use crate::choose::candidates::OwnPaths;
use crate::trace::mounts::Mounts;
use eke_prefetch_model::learn::Now;
use eke_prefetch_model::program::ProgramId;
use eke_prefetch_model::system::is_system;
use eke_prefetch_store::LearnedProgram;

impl Process<'_> {
    /// Whether files of a program have changed since it was learned.
    pub(super) fn is_changed(&self, program: ProgramId) -> bool {
        self.library.state_of(program).is_some_and(|known| known.changed)
    }

    /// Files of a program have changed. A start of it that has begun is in no arm of the trial.
    pub(super) fn set_changed(&mut self, program: ProgramId) {
        self.library.set_changed([program]);
        self.effect.leave_out(program);
    }

    /// These files have changed, which were read for these programs: those that use one of them are learned again, and those that were removed are
    /// forgotten.
    pub(super) fn set_changed_of(
        &mut self,
        programs: impl Iterator<Item = ProgramId>,
        changed: &[PathBuf],
        now: Now,
    ) {
        if changed.is_empty() {
            return;
        }
        let changed: HashSet<&Path> = changed.iter().map(PathBuf::as_path).collect();
        let mounts = Mounts::read(self.root);
        for id in programs {
            let Some(known) = self.library.program(id, now) else { continue };
            if mounts.lacks(&known.record.program) {
                self.library.forget(id);
                self.forget(id);
            } else if !self.is_changed(id) && uses_one(&known, &changed) {
                self.set_changed(id);
            }
        }
    }
}

/// Whether the program's set has one of these files, as a file of a package or as its own. What others use beside that changes all the time.
fn uses_one(known: &LearnedProgram, changed: &HashSet<&Path>) -> bool {
    let own = OwnPaths::new(once(&known.record.program));
    let mut files = known.set.files.iter().filter(|file| changed.contains(file.path.as_path()));
    files.any(|file| is_system(&file.path) || own.has(&file.path))
}
