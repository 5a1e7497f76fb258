//! The stages of the swap remedy in one place.

use eke_apply::session::Session;
use eke_apply::zram;
use eke_linux::Root;
use eke_model::step::{PlannedStep, Reason, Step, ZramSpec};

use crate::decide::steps::NO_DEVICES;
use crate::error::Result;
use crate::facts::{Facts, Missing};
use crate::measure::figures::Measured;
use crate::measure::{self, About, Limits, NoScratch, Scratch};
use crate::probe;

/// In whose name scratch devices stand in the journal.
pub const MEASURE: &str = "measure";

/// Compressed swap.
#[derive(Debug, Clone, Copy, Default)]
pub struct Swap;

impl Swap {
    /// Reads what the machine has; changes nothing.
    ///
    /// # Errors
    /// The kernel's files cannot be read.
    pub fn probe(&self, root: &Root) -> Result<Facts> {
        probe::probe(root)
    }

    /// Measures in bounded time. What it changes for that is journaled and gone when it returns. Without root it changes nothing, and every
    /// number is an estimate, marked as such.
    ///
    /// # Errors
    /// The kernel refused what every measurement needs.
    pub fn measure(&self, root: &Root, facts: &Facts) -> Result<Measured> {
        self.measure_about(root, facts, &About::default())
    }

    /// As [`Swap::measure`], of a part of the machine: the programs of a box.
    ///
    /// # Errors
    /// As there.
    pub fn measure_about(&self, root: &Root, facts: &Facts, about: &About) -> Result<Measured> {
        let has_zram = facts.zram.control || facts.zram.loadable;
        if !facts.is_root || !has_zram {
            return measure::measure(root, facts, &Limits::default(), about, &mut NoScratch);
        }
        if facts.container.is_some() {
            return estimated(
                root,
                facts,
                about,
                "a container uses its host's zram: the measurements are estimates in user space",
            );
        }
        if let (true, Err(why)) = (facts.zram.control, zram::may_remove(root)) {
            return estimated(
                root,
                facts,
                about,
                &format!("no scratch device is made, because it could not be removed again: {why}"),
            );
        }
        let mut scratch = Journaled::open(root)?;
        let measured = match scratch.with_module(facts) {
            Ok(facts) => measure::measure(root, &facts, &Limits::default(), about, &mut scratch),
            Err(why) => estimated(root, facts, about, &why.to_string()),
        };
        scratch.close()?;
        measured
    }
}

/// Figures without a scratch device although there is zram, and why.
fn estimated(root: &Root, facts: &Facts, about: &About, why: &str) -> Result<Measured> {
    let mut without = facts.clone();
    without.zram.control = false;
    let mut measured = measure::measure(root, &without, &Limits::default(), about, &mut NoScratch)?;
    measured.unmeasured.retain(|m| m.what != "zram");
    measured.unmeasured.push(Missing::new("zram", why));
    Ok(measured)
}

/// Scratch devices that stand in the journal while they exist, so that `down` finds what a `kill -9` left.
struct Journaled {
    session: Session,
}

impl Journaled {
    /// Removes first what a killed measurement left.
    fn open(root: &Root) -> Result<Self> {
        let mut scratch = Self { session: Session::open(root, MEASURE)? };
        scratch.undo_all()?;
        Ok(scratch)
    }

    /// Loads zram's module for the measurement where it is not there; the facts as they are then.
    fn with_module(&mut self, facts: &Facts) -> eke_linux::error::Result<Facts> {
        let mut facts = facts.clone();
        if !facts.zram.control {
            let step = Step::LoadModule { name: "zram".into(), params: NO_DEVICES.into() };
            self.session.apply(&PlannedStep { step, reason: Reason::new("to measure compression") })?;
            facts.zram.control = true;
        }
        Ok(facts)
    }

    fn undo_all(&mut self) -> Result<()> {
        for entry in self.session.journal().entries()?.iter().rev().filter(|e| e.intent.owner == MEASURE) {
            self.session.undo(entry.seq)?;
        }
        Ok(())
    }

    fn close(mut self) -> Result<()> {
        self.undo_all()?;
        let journal = self.session.journal();
        if journal.entries()?.is_empty() {
            journal.clear()?;
        }
        Ok(())
    }
}

impl Scratch for Journaled {
    fn add(&mut self, spec: &ZramSpec) -> eke_linux::error::Result<String> {
        self.session.scratch_zram(spec, Reason::new("to measure compression on this machine's own pages"))
    }

    fn remove(&mut self, name: &str) -> eke_linux::error::Result<()> {
        self.session.remove_scratch(name)
    }
}
