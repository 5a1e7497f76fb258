//! Facts and figures in, a plan out. Pure.
//!
//! - `choose`, [`backend`]: zram, zswap, somebody else's, or nothing
//! - [`algorithm`]: the most memory freed within two budgets
//! - [`size`]: how much to declare, and what that will hold
//! - [`knobs`]: swappiness, page-cluster and zswap's settings from measured costs
//! - `writeback`: the device of the user's own, if it may be had
//! - `steps`: all of that as steps, each with its reason
//! - [`advice`]: what eke does not do but the user may want to

pub mod advice;
pub mod algorithm;
pub mod backend;
mod choose;
mod existing;
pub mod knobs;
pub mod size;
pub(crate) mod steps;
mod writeback;

use eke_model::config::{BackendChoice, SwapSettings};
use eke_model::step::{Plan, Reason};
use serde::{Deserialize, Serialize};

use crate::facts::{Facts, ZramFeatures};
use crate::measure::figures::{AlgorithmFigures, Measured};
use algorithm::Choice;
use backend::Backend;
pub use steps::NO_DEVICES;

/// The name of this remedy in plans and the journal.
pub const REMEDY: &str = "swap";

/// A pool that holds less than this many times its size is not worth it: at 1.1, half of the RAM as pool makes 5 % more
/// memory, for which every page is compressed in vain on its way out, and a kill becomes a long stall.
const WORTH_RATIO: f64 = 1.1;

/// The plan and what it came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decision {
    /// Which compressed swap.
    pub backend: Backend,
    /// Why that one.
    pub backend_reason: Reason,
    /// The algorithms, each with its verdict; `None` where none was to be chosen.
    pub choice: Option<Choice>,
    /// What to do.
    pub plan: Plan,
}

/// A overrides that cannot be granted: what was asked, why not, what would be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadOverride(pub String);

/// What the user wants: the settings, and what the command line said for this once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overrides {
    /// From the configuration.
    pub settings: SwapSettings,
    /// A declared size of zram instead of the computed one.
    pub size: Option<eke_model::units::Bytes>,
}

impl Overrides {
    /// Was this very thing asked for, so that it is done even if it brings little?
    fn insists(&self) -> bool {
        self.size.is_some() || self.settings.backend != BackendChoice::Auto
    }
}

/// What a decision stands on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given<'a> {
    facts: &'a Facts,
    measured: &'a Measured,
    overrides: &'a Overrides,
}

impl<'a> Given<'a> {
    /// What zram offers here; `None` while no device could be asked.
    fn zram_features(&self) -> Option<&'a ZramFeatures> {
        self.measured.zram_features.as_ref().or(self.facts.zram.features.as_ref())
    }
}

/// Decides.
///
/// # Errors
/// [`BadOverride`] for an algorithm, back end or device that this machine cannot give, or a size that makes no sense.
pub fn decide(facts: &Facts, measured: &Measured, overrides: &Overrides) -> Result<Decision, BadOverride> {
    let given = Given { facts, measured, overrides };
    let (backend, backend_reason) = choose::choose(facts, &overrides.settings)?;
    let plan = Plan { remedy: REMEDY.to_owned(), ..Plan::default() };
    let mut decision = Decision { backend, backend_reason, choice: None, plan };
    match &decision.backend {
        Backend::Nothing => {}
        Backend::Adopted { device } => steps::around_adopted(&mut decision.plan, given, device),
        Backend::Zram | Backend::Zswap { .. } => decision.set_up(given)?,
    }
    decision.say_if_nothing_changes();
    decision.plan.advice = advice::advice(given, &decision);
    Ok(decision)
}

impl Decision {
    fn set_up(&mut self, given: Given<'_>) -> Result<(), BadOverride> {
        let choice =
            algorithm::choose(given.measured, &self.backend, given.facts.cpus, &given.overrides.settings)?;
        match choice.chosen.and_then(|i| given.measured.algorithms.get(i)) {
            None => self.give_up(choice.reason.clone()),
            Some(f) if choice.trusted && f.ratio < WORTH_RATIO && !given.overrides.insists() => {
                self.give_up(in_vain(f));
            }
            Some(figures) => {
                let size = size::size(given.facts, figures, given.overrides, choice.trusted)?;
                let chosen = steps::Chosen { figures, size, choice: &choice };
                steps::set_up(&mut self.plan, given, &self.backend, &chosen)?;
            }
        }
        self.choice = Some(choice);
        Ok(())
    }

    fn give_up(&mut self, why: Reason) {
        self.backend = Backend::Nothing;
        self.backend_reason =
            Reason { text: format!("nothing is set up: {}", why.text), numbers: why.numbers };
    }

    fn say_if_nothing_changes(&mut self) {
        if self.plan.steps.is_empty() && self.backend != Backend::Nothing {
            self.backend_reason.text += "; all settings have these values already";
        }
    }
}

fn in_vain(figures: &AlgorithmFigures) -> Reason {
    let text = format!(
        "this machine's pages hardly compress ({} reaches {:.2} to 1), so compressed swap would cost more time than it gains (--backend sets it up nevertheless)",
        figures.label(),
        figures.ratio
    );
    Reason::new(text).with("ratio", figures.ratio)
}
