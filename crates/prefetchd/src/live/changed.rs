//! Which programs are learned again because their files have changed, and which files and programs are forgotten because they are gone.

use std::collections::{BTreeSet, HashSet};
use std::iter::once;
use std::path::{Path, PathBuf};

use super::process::Process;
use crate::choose::candidates::OwnPaths;
use crate::read::FetchReport;
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

    /// Files that were read for these programs have changed or are gone. Programs that use a changed one are learned again; programs and users' files that
    /// were removed are forgotten.
    pub(super) fn set_changed_of(
        &mut self,
        programs: impl Iterator<Item = ProgramId>,
        report: &FetchReport,
        now: Now,
    ) {
        let [changed, gone] = [&report.changed, &report.gone].map(|paths| set_of(paths));
        if changed.is_empty() && gone.is_empty() {
            return;
        }
        let (mounts, mut removed) = (Mounts::read(self.root), BTreeSet::new());
        for id in programs {
            let Some(known) = self.library.program(id, now) else { continue };
            let program = &known.record.program;
            let missed = missed(&known, &gone, &mounts);
            let is_it = |path: &PathBuf| *path == program.exe || program.script.as_ref() == Some(path);
            if missed.iter().any(is_it) || !changed.is_empty() && mounts.lacks(program) {
                self.library.forget(id);
                self.forget(id);
            } else if !self.is_changed(id) && uses_one(&known, &changed) {
                self.set_changed(id);
            }
            removed.extend(missed);
        }
        removed.iter().filter(|path| !is_system(path)).for_each(|path| self.library.forget_file(path));
    }
}

fn set_of(paths: &[PathBuf]) -> HashSet<&Path> {
    paths.iter().map(PathBuf::as_path).collect()
}

/// The files of a program's set that were removed, of those at whose paths nothing was.
fn missed(known: &LearnedProgram, gone: &HashSet<&Path>, mounts: &Mounts) -> Vec<PathBuf> {
    let files = known.set.files.iter().filter(|file| gone.contains(file.path.as_path()));
    files.filter(|file| mounts.misses(&file.path, &file.stamp)).map(|file| file.path.clone()).collect()
}

/// Whether the program's set has one of these files, as a file of a package or as its own. What others use beside that changes all the time.
fn uses_one(known: &LearnedProgram, changed: &HashSet<&Path>) -> bool {
    let own = OwnPaths::new(once(&known.record.program));
    let mut files = known.set.files.iter().filter(|file| changed.contains(file.path.as_path()));
    files.any(|file| is_system(&file.path) || own.has(&file.path))
}
