//! Which learned programs are dropped, and which are earlier versions of another one.

use std::path::{Path, PathBuf};

use super::super::clock::unix_s;
use super::Library;
use eke_prefetch_model::learn::{Now, wrappers};
use eke_prefetch_model::program::{Program, ProgramId};
use eke_prefetch_model::user_event::Event;
use eke_prefetch_model::version;

impl Library {
    /// An earlier eke learned wrappers together with what they start. Forgets the programs that only it tells apart (`env okular`), and has the others
    /// learned again at their next launches. Returns the number of forgotten programs.
    pub fn outgrow_wrappers(&mut self, now: Now) -> usize {
        let forgotten = self.forget_those(&wrappers::is_outdated, now);
        self.set_changed(self.programs.keys().copied().collect::<Vec<_>>());
        forgotten.len()
    }

    /// Forgets these programs.
    pub fn forget_those(&mut self, are_these: &dyn Fn(&Program) -> bool, now: Now) -> Vec<ProgramId> {
        let ids = self.those(are_these, now);
        ids.iter().for_each(|id| self.forget(*id));
        ids
    }

    /// Other versions of a program whose path has a version in it.
    pub fn other_versions(&mut self, program: &Program, now: Now) -> Vec<ProgramId> {
        let has_version = |path: &PathBuf| version::of(path).is_some();
        if has_version(&program.exe) || program.script.as_ref().is_some_and(has_version) {
            self.those(&|other| version::succeeds(program, other), now)
        } else {
            Vec::new()
        }
    }

    fn those(&mut self, are_these: &dyn Fn(&Program) -> bool, now: Now) -> Vec<ProgramId> {
        self.all(now).iter().filter(|program| are_these(program)).map(Program::id).collect()
    }

    /// All learned programs.
    pub fn all(&mut self, now: Now) -> Vec<Program> {
        let records = self.with(|store| store.records(unix_s(now))).unwrap_or_default();
        records.into_iter().map(|record| record.program).collect()
    }

    /// Forgets a program, and what waits to be written of it.
    pub fn forget(&mut self, id: ProgramId) {
        self.with(|store| store.forget_program(id));
        let known = self.programs.remove(&id);
        self.drop_waiting(&[id]);
        if known.is_some_and(|known| known.state.changed) {
            self.store_changed();
        }
    }

    /// A file is gone: no program's set has it any more.
    pub fn forget_file(&mut self, path: &Path) {
        self.with(|store| store.forget_file(path));
    }

    /// What waits to be written of these programs goes.
    pub(super) fn drop_waiting(&mut self, forgotten: &[ProgramId]) {
        self.launches.retain(|launch| !forgotten.contains(&launch.id));
        self.events.retain(|event| match event.event {
            Event::Start(id) | Event::Stop(id) => !forgotten.contains(&id),
            Event::Session => true,
        });
    }
}
