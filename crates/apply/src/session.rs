//! Applies steps, recording each before it happens.

use std::path::Path;

use eke_model::step::{Plan, PlannedStep, Reason, Step, ZramSpec};

use crate::journal::Journal;
use crate::journal::record::{Intent, Phase, Undo};
use crate::knob::{self, Knob, Restore};
use crate::process;
use crate::revert::{self, Outcome, module_dir};
use crate::swapped_off::{self, Off};
use crate::write::{locate, read_for, read_value, write_value};
use crate::zram;
use crate::{swap_area, sys};
use eke_linux::cgroup::name;
use eke_linux::discard;
use eke_linux::error::{Error, Result};
use eke_linux::read;
use eke_linux::root::Root;
use eke_linux::zram::{devices, next_name};
use rustix::process::Signal;

/// Mount point of control groups, relative to the root.
const CGROUPS: &str = "sys/fs/cgroup/";

/// The right to change the machine: the open journal, and the owner of the changes.
#[derive(Debug)]
pub struct Session {
    root: Root,
    owner: String,
    journal: Journal,
}

/// The result of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppliedStep {
    /// It was made, with this sequence number in the journal.
    Made {
        /// The sequence number.
        seq: u64,
        /// The name of a new zram device.
        device: Option<String>,
    },
    /// The machine already had this state; nothing was changed, and nothing will be undone.
    AlreadySo,
    /// Its control group ended after the plan was made. Groups of sessions and services end at any time.
    GroupEnded,
}

impl Session {
    /// Opens the journal for changes of `owner` (a remedy).
    ///
    /// # Errors
    /// As in [`Journal::open`].
    pub fn open(root: &Root, owner: &str) -> Result<Self> {
        Ok(Self { root: root.clone(), owner: owner.to_owned(), journal: Journal::open(root)? })
    }

    /// The same without waiting for another eke.
    ///
    /// # Errors
    /// As in [`Journal::try_open`].
    pub fn try_open(root: &Root, owner: &str) -> Result<Self> {
        Ok(Self { root: root.clone(), owner: owner.to_owned(), journal: Journal::try_open(root)? })
    }

    /// Applies a plan in order. If a step fails, the steps before it are undone.
    ///
    /// # Errors
    /// The step that failed, and the steps that could not be undone after it.
    pub fn apply_plan(&mut self, plan: &Plan) -> Result<Vec<AppliedStep>> {
        let mut applied = Vec::new();
        for planned in &plan.steps {
            match self.apply(planned) {
                Ok(a) => applied.push(a),
                Err(e) => return Err(self.back_out(planned, e, &applied)),
            }
        }
        Ok(applied)
    }

    fn back_out(&mut self, planned: &PlannedStep, error: Error, applied: &[AppliedStep]) -> Error {
        let mut left = Vec::new();
        for a in applied.iter().rev() {
            if let AppliedStep::Made { seq, .. } = a {
                if let Err(e) = self.undo(*seq) {
                    left.push(e.to_string());
                }
            }
        }
        let after = if left.is_empty() {
            "everything before it was undone".to_owned()
        } else {
            format!("and not all could be undone: {}", left.join("; "))
        };
        Error::Refused(format!("the step \"{}\" failed: {error}; {after}", planned.step))
    }

    /// Applies one step.
    ///
    /// # Errors
    /// The kernel's answer. The step then had no effect, or it is in the journal for `down`.
    pub fn apply(&mut self, planned: &PlannedStep) -> Result<AppliedStep> {
        match self.apply_to_present(planned) {
            Err(e) if e.is_absent() && group_ended(&self.root, &planned.step) => Ok(AppliedStep::GroupEnded),
            applied => applied,
        }
    }

    fn apply_to_present(&mut self, planned: &PlannedStep) -> Result<AppliedStep> {
        let Some(undo) = self.inverse(&planned.step)? else {
            return Ok(AppliedStep::AlreadySo);
        };
        let intent = Intent {
            owner: self.owner.clone(),
            step: planned.step.clone(),
            undo,
            reason: planned.reason.text.clone(),
            made_by: name::this_process(&self.root).unwrap_or_default(),
        };
        let seq = self.journal.intend(intent)?;
        let performed = self.perform(seq, &planned.step);
        let noted = performed
            .and_then(|device| self.journal.note(seq, Phase::Done { draining: false }).map(|()| device));
        noted.map(|device| AppliedStep::Made { seq, device }).map_err(|e| self.clean_up(seq, e))
    }

    /// Adds a scratch device for a measurement. It is journaled, so `down` finds it after a crash.
    ///
    /// # Errors
    /// The kernel's answer; no device is left then.
    pub fn scratch_zram(&mut self, spec: &ZramSpec, reason: Reason) -> Result<String> {
        match self.apply(&PlannedStep { step: Step::AddZram(spec.clone()), reason })? {
            AppliedStep::Made { device: Some(name), .. } => Ok(name),
            _ => Err(Error::Refused("the kernel gave no device".into())),
        }
    }

    /// Removes a device of [`Self::scratch_zram`].
    ///
    /// # Errors
    /// The kernel's answer, or `Refused` for a device that is not in the journal.
    pub fn remove_scratch(&mut self, device: &str) -> Result<()> {
        let entries = self.journal.entries()?;
        let entry = entries.iter().rev().find(|e| e.made.as_deref() == Some(device));
        match entry {
            Some(e) => self.undo(e.seq),
            None => Err(Error::Refused(format!("{device} is not a device that eke created"))),
        }
    }

    /// Undoes the change with this sequence number.
    ///
    /// # Errors
    /// The kernel's answer, or `Refused` with the reason why it cannot be undone now.
    pub fn undo(&mut self, seq: u64) -> Result<()> {
        let entries = self.journal.entries()?;
        let Some(entry) = entries.iter().find(|e| e.seq == seq) else { return Ok(()) };
        match revert::one(&self.root, &self.journal, entry)? {
            Outcome::Blocked(why) => Err(Error::Refused(why)),
            _ => Ok(()),
        }
    }

    /// Undoes all changes of this owner, newest first, and closes the journal if it is then empty. One that cannot be undone
    /// holds up only those that must wait for newer ones.
    ///
    /// # Errors
    /// As in [`Session::undo`], for the first change that cannot be undone.
    pub fn undo_own(&mut self) -> Result<()> {
        let mut entries = self.journal.entries()?;
        entries.retain(|e| e.intent.owner == self.owner);
        let mut all = Ok(());
        for entry in entries.iter().rev() {
            if all.is_ok() || !revert::waits(&entry.intent.undo) {
                all = all.and(self.undo(entry.seq));
            }
        }
        all?;
        if self.journal.entries()?.is_empty() {
            self.journal.clear()?;
        }
        Ok(())
    }

    /// Swaps devices of this owner on again that somebody else swapped off. Returns their names, each with the kernel's
    /// answer. The swap header outlives a swapoff, and the journal has the undo already.
    ///
    /// # Errors
    /// As in [`swapped_off::devices`].
    pub fn swap_on_again(&self) -> Result<Vec<(String, Result<()>)>> {
        let off = swapped_off::devices(&self.root, &self.owner)?.into_iter().filter(|off| !off.is_removed);
        let on = |off: Off| {
            let answer = zram::swap_on(&self.root, &off.name, off.spec.swap_priority.unwrap_or_default());
            (off.name, answer)
        };
        Ok(off.map(on).collect())
    }

    /// The open journal.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The inverse of a step; `None` if the machine already has that state.
    fn inverse(&self, step: &Step) -> Result<Option<Undo>> {
        match step {
            Step::Set { knob, target, value } => self.inverse_of_set(knob, target, value),
            Step::LoadModule { name, .. } => {
                let loaded = self.root.exists(module_dir(name));
                Ok((!loaded).then(|| Undo::UnloadModule { name: name.clone() }))
            }
            Step::AddZram(_) => {
                let before = devices(&self.root)?;
                let expected = next_name(&before);
                Ok(Some(Undo::RemoveZram { before, expected }))
            }
            Step::SwapOn { path, .. } => {
                let on = read::swap_at(&self.root, path)?.is_some();
                Ok((!on).then(|| Undo::SwapOff { path: path.clone() }))
            }
            Step::SwapOff { path } => {
                let area = read::swap_at(&self.root, path)?;
                Ok(area.map(|a| Undo::SwapOn {
                    discard: discard::of(&self.root, &a.path),
                    path: a.path,
                    priority: i16::try_from(a.priority).ok().filter(|p| *p >= 0),
                }))
            }
            Step::Stop { processes } => {
                let undo = Undo::Continue { processes: processes.clone() };
                Ok((!processes.is_empty()).then_some(undo))
            }
        }
    }

    fn inverse_of_set(&self, name: &str, target: &str, value: &str) -> Result<Option<Undo>> {
        let (knob, _) = locate(&self.root, name, target)?;
        if knob.restore != Restore::WriteOld {
            return Ok(Some(Undo::Nothing));
        }
        let old = read_for(&self.root, name, target, value)?;
        let had_it = revert::groups_with(&self.root, knob.inherited_by, value)?;
        let undo = Undo::Write {
            knob: name.into(),
            target: target.into(),
            old: old.clone(),
            new: value.into(),
            had_it,
            beside: self.beside(knob, target),
        };
        Ok((!knob.codec.same(&old, value)).then_some(undo))
    }

    /// The settings that change with this one and exist, with their values.
    fn beside(&self, knob: &Knob, target: &str) -> Vec<(String, String)> {
        let others = knob.changes_with_it.iter();
        others
            .filter_map(|other| Some(((*other).to_owned(), read_value(&self.root, other, target).ok()?)))
            .collect()
    }

    fn perform(&self, seq: u64, step: &Step) -> Result<Option<String>> {
        match step {
            Step::Set { knob, target, value } => write_value(&self.root, knob, target, value).map(|()| None),
            Step::LoadModule { name, params } => {
                let at = self.root.path(module_dir(name));
                sys::of(&self.root)
                    .load_module(name, params)
                    .map_err(|e| Error::io("load the module of", &at, e))
                    .map(|()| None)
            }
            Step::AddZram(spec) => self.add_zram(seq, spec).map(Some),
            Step::SwapOn { path, priority } => {
                swap_area::swap_on(&self.root, path, *priority, None).map(|()| None)
            }
            Step::SwapOff { path } => {
                revert::swap_off(&self.root, path)?.map_or(Ok(None), |why| Err(Error::Refused(why)))
            }
            Step::Stop { processes } => {
                process::signal_all(&self.root, processes, Signal::STOP).map(|_| None)
            }
        }
    }

    fn add_zram(&self, seq: u64, spec: &ZramSpec) -> Result<String> {
        let device = zram::hot_add(&self.root)?;
        self.journal.note(seq, Phase::Made { device: device.clone() })?;
        zram::configure(&self.root, &device, spec)?;
        Ok(device)
    }

    /// Undoes a step that failed half-way, or that could not be recorded as done. If even that fails, the step stays in
    /// the journal for `down`, and the error names it.
    fn clean_up(&self, seq: u64, error: Error) -> Error {
        match self.take_back(seq, &error) {
            Ok(Outcome::Restored(_) | Outcome::AsBefore) => {
                let _ = self.journal.note(seq, Phase::Failed { error: error.to_string() });
                error
            }
            Ok(Outcome::Kept(why) | Outcome::Blocked(why)) => still_in_force(&error, &why),
            Err(why) => still_in_force(&error, &why.to_string()),
        }
    }

    fn take_back(&self, seq: u64, error: &Error) -> Result<Outcome> {
        let entries = self.journal.entries()?;
        let Some(entry) = entries.iter().find(|e| e.seq == seq) else { return Ok(Outcome::AsBefore) };
        match error {
            Error::ReadBack { found, .. } => revert::another_value(&self.root, entry, found),
            _ => revert::effect(&self.root, entry),
        }
    }
}

/// Whether the step sets a control group that does not exist any more.
fn group_ended(root: &Root, step: &Step) -> bool {
    let Step::Set { knob, target, .. } = step else { return false };
    let Ok((knob, path)) = locate(root, knob, target) else { return false };
    knob.path.starts_with(CGROUPS) && !path.parent().is_some_and(Path::exists)
}

fn still_in_force(error: &Error, why: &str) -> Error {
    Error::Refused(format!(
        "{error}; the step itself is still in force ({why}), and `eke down` tries to undo it"
    ))
}

/// Starts an action that needs no undo (recompress, writeback, compact), or limits one on a device of eke's.
///
/// # Errors
/// The kernel's answer; `Refused` for a knob that must be journaled.
pub fn trigger(root: &Root, name: &str, target: &str, value: &str) -> Result<()> {
    match knob::find(name) {
        Some(k) if k.restore == Restore::WriteOld => {
            Err(Error::Refused(format!("{name} is a setting, not an action; it needs the journal")))
        }
        _ => write_value(root, name, target, value),
    }
}
