//! What prefetch gains on this machine: starts that are left alone by chance, beside the others.

use std::collections::BTreeMap;
use std::time::Duration;

use eke_model::snapshot::PrefetchEffect;
use eke_prefetch_model::control::{Control, Trial};
use eke_prefetch_model::program::ProgramId;

use super::library::Library;

/// Version 1 also has starts whose durations cannot be compared: see [`Effect::load`]; version 2 also has warm starts, for which eke does nothing.
const STATE: (&str, u32) = ("trial", 3);

/// The running trial.
#[derive(Debug)]
pub(super) struct Effect {
    control: Control,
    trial: Trial,
    /// For each learned program that started: whether it was left alone.
    started: BTreeMap<ProgramId, bool>,
    sees_uses: bool,
}

impl Effect {
    /// Goes on with the stored durations. `seed` is any number that differs between runs. Unless the tracer `sees_uses` of pages, no start is left
    /// alone or counted: then a start would last until the last page that the program itself read, which is hardly anything if eke read its files.
    pub fn load(library: &mut Library, percent: u32, sees_uses: bool, seed: u64) -> Self {
        let trial = library.json_state(STATE).unwrap_or_default();
        let control = Control::new(if sees_uses { percent } else { 0 }, seed);
        Self { control, trial, started: BTreeMap::new(), sees_uses }
    }

    /// Whether the next start of this program is left alone.
    pub fn is_left_alone(&mut self, program: ProgramId) -> bool {
        self.control.is_left_alone(program)
    }

    /// A learned program has started; returns whether it was drawn to be left alone. The start counts if eke would read for it (`is_counted`): without
    /// missing files both arms are alike. All starts are recorded while a program's files are changed, or none of its user's launches is learned: they are
    /// in neither arm, because what eke reads then is outdated.
    pub fn started(&mut self, program: ProgramId, is_counted: bool) -> bool {
        let is_left_alone = self.control.started(program);
        if is_counted && self.sees_uses {
            self.started.insert(program, is_left_alone);
            if !is_left_alone {
                self.trial.read_for(program);
            }
        } else {
            self.started.remove(&program);
        }
        is_left_alone
    }

    /// The running start of this program is in neither arm: its files have changed, which was noticed after it had begun.
    pub fn leave_out(&mut self, program: ProgramId) {
        self.started.remove(&program);
    }

    /// Counts a recorded start, if its program was known, so that it could have been read.
    pub fn recorded(&mut self, program: ProgramId, took: Duration, library: &mut Library) {
        let Some(was_left_alone) = self.started.remove(&program) else { return };
        self.trial.add(program, was_left_alone, took);
        library.put_json_state(STATE, &self.trial);
    }

    /// Forgets a program.
    pub fn forget(&mut self, program: ProgramId) {
        self.trial.forget(program);
        self.control.forget(program);
        self.started.remove(&program);
    }

    /// The effect so far.
    pub fn so_far(&self) -> PrefetchEffect {
        self.trial.effect()
    }
}
