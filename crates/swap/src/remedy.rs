//! Probes and measures the machine.

use eke_apply::session::Session;
use eke_apply::{journal, zram};
use eke_linux::Root;
use eke_model::config::SwapSettings;
use eke_model::step::{PlannedStep, Reason, Step, ZramSpec};

use crate::decide::steps::NO_DEVICES;
use crate::error::Result;
use crate::facts::{Facts, Missing};
use crate::measure::measurements::Measured;
use crate::measure::{self, Limits, NoScratch, Scope, Scratch};
use crate::probe;

/// The owner of scratch devices in the journal.
pub const MEASURE: &str = "measure";

/// The algorithms that a short measurement compares: the kernel's default of zram, the fastest, and the usual one with the highest ratio.
const USUAL: [&str; 3] = ["lzo-rle", "lz4", "zstd"];

/// Compressed swap.
#[derive(Debug, Clone, Copy, Default)]
pub struct Swap;

impl Swap {
    /// Reads the facts; changes nothing.
    ///
    /// # Errors
    /// The kernel's files cannot be read.
    pub fn probe(&self, root: &Root) -> Result<Facts> {
        probe::probe(root)
    }

    /// The same, with the devices that the settings name.
    ///
    /// # Errors
    /// As [`Swap::probe`].
    pub fn probe_for(&self, root: &Root, settings: &SwapSettings) -> Result<Facts> {
        let writeback = probe::disks::writeback(root, &settings.writeback_device);
        let writeback_directory = probe::disks::writeback_directory(root, &settings.writeback_directory);
        Ok(Facts { writeback, writeback_directory, ..self.probe(root)? })
    }

    /// Measures in bounded time. Its changes are journaled and undone when it returns. Without root it changes nothing, and every number is an
    /// estimate, marked as such.
    ///
    /// # Errors
    /// The kernel refused a part that every measurement needs.
    pub fn measure(&self, root: &Root, facts: &Facts) -> Result<Measured> {
        self.measure_scope(root, facts, &Scope::default())
    }

    /// Measures a part of the machine, such as the programs of a box.
    ///
    /// # Errors
    /// As [`Swap::measure`].
    pub fn measure_scope(&self, root: &Root, facts: &Facts, scope: &Scope) -> Result<Measured> {
        measured(root, facts, &Limits::default(), scope)
    }

    /// Measures the usual algorithms alone, or the one of the settings, in a time that a desktop can wait at boot.
    ///
    /// # Errors
    /// As [`Swap::measure`].
    pub fn measure_at_boot(&self, root: &Root, facts: &Facts, settings: &SwapSettings) -> Result<Measured> {
        let algorithms = match settings.algorithm.as_str() {
            "auto" => USUAL.map(str::to_owned).to_vec(),
            name => vec![name.to_owned()],
        };
        let scope = Scope { algorithms: Some(algorithms), ..Scope::default() };
        measured(root, facts, &Limits::at_boot(), &scope)
    }
}

fn measured(root: &Root, facts: &Facts, limits: &Limits, scope: &Scope) -> Result<Measured> {
    let has_zram = facts.zram.control || facts.zram.loadable;
    if !facts.is_root || !has_zram {
        return measure::measure(root, facts, limits, scope, &mut NoScratch);
    }
    if facts.elsewhere().is_some() {
        return estimated(
            root,
            facts,
            limits,
            scope,
            "a container's zram is its host's: the numbers are estimates from user space",
        );
    }
    if let (true, Err(why)) = (facts.zram.control, zram::may_remove(root)) {
        return estimated(
            root,
            facts,
            limits,
            scope,
            &format!("no scratch device is made, because it could not be removed again: {why}"),
        );
    }
    let mut scratch = Journaled::open(root)?;
    let measured = match scratch.with_module(facts) {
        Ok(facts) => measure::measure(root, &facts, limits, scope, &mut scratch),
        Err(why) => estimated(root, facts, limits, scope, &why.to_string()),
    };
    scratch.close()?;
    measured
}

/// Measures without a scratch device, although there is zram.
fn estimated(root: &Root, facts: &Facts, limits: &Limits, scope: &Scope, why: &str) -> Result<Measured> {
    let mut without = facts.clone();
    without.zram.control = false;
    let mut measured = measure::measure(root, &without, limits, scope, &mut NoScratch)?;
    measured.unmeasured.retain(|m| m.what != "zram");
    measured.unmeasured.push(Missing::new("zram", why));
    Ok(measured)
}

/// Undoes what a killed measurement left, unless another one runs: whoever has the journal open measures, so these are nobody's.
///
/// # Errors
/// The kernel's answer; it is tried again by the next measurement.
pub fn undo_left_over(root: &Root) -> Result<()> {
    let is_left = journal::entries(root)?.iter().any(|entry| entry.intent.owner == MEASURE);
    if !is_left {
        return Ok(());
    }
    match Session::try_open(root, MEASURE) {
        Err(e) if e.is_locked() => Ok(()),
        session => Journaled { session: session?, modules: Vec::new() }.close(),
    }
}

/// Scratch devices and modules that are in the journal while they exist, so that `down` removes them after `kill -9`.
pub(crate) struct Journaled {
    session: Session,
    /// Algorithms that the kernel loads as modules when a device gets them, and never unloads.
    modules: Vec<String>,
}

impl Journaled {
    /// Opens the journal, after removing devices of a killed measurement.
    pub(crate) fn open(root: &Root) -> Result<Self> {
        let modules = probe::zram::algorithm_modules(root);
        let mut scratch = Self { session: Session::open(root, MEASURE)?, modules };
        scratch.undo_all()?;
        Ok(scratch)
    }

    /// Loads zram's module if needed; returns the facts after that.
    fn with_module(&mut self, facts: &Facts) -> eke_linux::error::Result<Facts> {
        let mut facts = facts.clone();
        if !facts.zram.control {
            let step = Step::LoadModule { name: "zram".into(), params: NO_DEVICES.into() };
            self.session.apply(&PlannedStep { step, reason: Reason::new("to measure compression") })?;
            facts.zram.control = true;
        }
        Ok(facts)
    }

    /// Loads the module of an algorithm, so that the journal undoes it. A refusal (a unit that may not load modules) is no error: the kernel loads
    /// the module itself.
    fn load_algorithm(&mut self, name: &str) {
        if self.modules.iter().any(|module| module == name) {
            let step = Step::LoadModule { name: name.to_owned(), params: String::new() };
            let _ =
                self.session.apply(&PlannedStep { step, reason: Reason::new("to measure this algorithm") });
        }
    }

    fn undo_all(&mut self) -> Result<()> {
        for entry in self.session.journal().entries()?.iter().rev().filter(|e| e.intent.owner == MEASURE) {
            self.session.undo(entry.seq)?;
        }
        Ok(())
    }

    pub(crate) fn close(mut self) -> Result<()> {
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
        self.load_algorithm(&spec.algorithm);
        self.session.scratch_zram(spec, Reason::new("to measure compression on this machine's own pages"))
    }

    fn remove(&mut self, name: &str) -> eke_linux::error::Result<()> {
        self.session.remove_scratch(name)
    }
}

#[cfg(test)]
mod tests {
    use eke_model::units::Bytes;
    use eke_testkit::fake_kernel::FakeKernel;

    use super::*;

    #[test]
    fn what_a_killed_measurement_left_goes_unless_another_one_runs() {
        let machine = FakeKernel::new();
        let root = &machine.root();
        let before = machine.tree();
        undo_left_over(root).unwrap();
        assert_eq!(machine.tree(), before, "nothing is left, and nothing is written");
        let spec = serde_json::json!({ "algorithm": "lz4", "disksize": Bytes::mib(1) });
        let spec: ZramSpec = serde_json::from_value(spec).unwrap();
        let mut killed = Session::open(root, MEASURE).unwrap();
        let device = killed.scratch_zram(&spec, Reason::new("a test")).unwrap();
        undo_left_over(root).unwrap();
        assert!(root.exists(format!("sys/block/{device}")), "it is not killed yet");
        drop(killed);
        undo_left_over(root).unwrap();
        assert!(!root.exists(format!("sys/block/{device}")));
        assert!(journal::entries(root).unwrap().is_empty());
    }
}
