//! What prefetch gains on this machine: starts that are left alone by chance, beside the others.

use std::collections::BTreeMap;
use std::time::Duration;

use eke_model::snapshot::PrefetchEffect;
use eke_prefetch_model::control::{Control, Trial};
use eke_prefetch_model::program::ProgramId;

use super::library::Library;

const STATE: (&str, u32) = ("trial", 1);

/// The running trial.
#[derive(Debug)]
pub(super) struct Effect {
    control: Control,
    trial: Trial,
    /// For each learned program that started: whether it was left alone.
    started: BTreeMap<ProgramId, bool>,
}

impl Effect {
    /// Goes on with the stored durations. `seed` is any number that differs between runs.
    pub fn load(library: &mut Library, percent: u32, seed: u64) -> Self {
        let trial = library.json_state(STATE).unwrap_or_default();
        Self { control: Control::new(percent, seed), trial, started: BTreeMap::new() }
    }

    /// Whether the next start of this program is left alone.
    pub fn is_left_alone(&mut self, program: ProgramId) -> bool {
        self.control.is_left_alone(program)
    }

    /// A learned program has started; returns whether it is left alone. All starts are recorded while its files are `changed`: they are in neither arm,
    /// because what eke reads then is outdated.
    pub fn started(&mut self, program: ProgramId, changed: bool) -> bool {
        let is_left_alone = self.control.started(program);
        if changed {
            self.started.remove(&program);
        } else {
            self.started.insert(program, is_left_alone);
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
        self.started.remove(&program);
    }

    /// The effect so far.
    pub fn so_far(&self) -> PrefetchEffect {
        self.trial.effect()
    }
}
