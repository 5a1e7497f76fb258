//! Facts and measurements in, a plan out. Pure.
//!
//! - `choose`, [`backend`]: zram, zswap, another program's zram, or nothing
//! - [`algorithm`]: the most memory freed within two budgets
//! - `budgets`: those two, from the settings, the disk and the RAM
//! - [`replace`]: whether another dictionary replaces the one in use
//! - `disk`: what a page from the disk of a swap area costs
//! - `overflow`: whether most pages go to a disk although another program's zram is there
//! - `overcommit`: a kernel that refuses allocations beyond a limit
//! - `groups`: control groups with memory limits, and which compressed swap is charged to them
//! - `hibernation`: whether the hibernation target can hold an image
//! - [`size`]: the declared size and its capacity
//! - [`knobs`]: swappiness, page-cluster and zswap's settings from measured costs
//! - [`present`]: the values that steps replace
//! - `writeback`: the user's own writeback device, if it is free
//! - `steps`: the decision as steps, each with its reason
//! - [`advice`]: what the user may do beyond the plan

pub mod advice;
pub mod algorithm;
pub mod backend;
mod budgets;
mod choose;
mod disk;
mod existing;
mod groups;
mod hibernation;
pub mod knobs;
mod overcommit;
mod overflow;
pub mod present;
pub mod replace;
pub mod size;
pub(crate) mod steps;
mod writeback;

use eke_model::config::{BackendChoice, Enabled, SwapSettings};
use eke_model::step::{Plan, Reason, Step};
use serde::{Deserialize, Serialize};

use crate::facts::{Facts, ZramFeatures};
use crate::measure::measurements::{AlgorithmMeasurement, Measured};
use algorithm::Choice;
use backend::Backend;
pub use choose::choose;
pub use steps::NO_DEVICES;

/// The name of this remedy in plans and the journal.
pub const REMEDY: &str = "swap";

/// The lowest ratio for compressed swap: at 1.1, half of the RAM as pool gives 5 % more memory. For that every page is compressed on its way out,
/// and an OOM kill becomes a long stall.
const LEAST_RATIO: f64 = 1.1;

/// The plan and its grounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decision {
    /// The back end.
    pub backend: Backend,
    /// The reason for it.
    pub backend_reason: Reason,
    /// The algorithms, each with its verdict; `None` if the back end needs none.
    pub choice: Option<Choice>,
    /// The steps.
    pub plan: Plan,
}

/// An impossible override, as a sentence: the request, the reason, and what is possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadOverride(pub String);

/// The user's requests: the settings, and options of this command line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overrides {
    /// From the configuration.
    pub settings: SwapSettings,
    /// A declared size of zram instead of the computed one.
    pub size: Option<eke_model::units::Bytes>,
    /// Whether the guard is on, for the plan's sentence about it.
    pub guard: Enabled,
}

impl Overrides {
    /// Did the user request compressed swap explicitly, so that it is set up even if it gains little?
    fn is_explicit(&self) -> bool {
        self.size.is_some() || self.settings.backend != BackendChoice::Auto
    }
}

/// The input of a decision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given<'a> {
    facts: &'a Facts,
    measured: &'a Measured,
    overrides: &'a Overrides,
}

impl<'a> Given<'a> {
    /// The features of this kernel's zram; `None` while no device exists.
    fn zram_features(&self) -> Option<&'a ZramFeatures> {
        self.measured.zram_features.as_ref().or(self.facts.zram.features.as_ref())
    }
}

/// Decides.
///
/// # Errors
/// [`BadOverride`] for an algorithm, back end, device or size that is impossible on this machine.
pub fn decide(facts: &Facts, measured: &Measured, overrides: &Overrides) -> Result<Decision, BadOverride> {
    let given = Given { facts, measured, overrides };
    let (backend, backend_reason) = choose(given.facts, &given.overrides.settings, &given.measured.kernel)?;
    let plan = Plan { remedy: REMEDY.to_owned(), ..Plan::default() };
    let mut decision = Decision { backend, backend_reason, choice: None, plan };
    match &decision.backend {
        Backend::Nothing => {}
        Backend::Adopted { device } => steps::around_adopted(&mut decision.plan, given, device),
        Backend::Zram | Backend::Zswap { .. } => decision.set_up(given)?,
    }
    decision.note_if_nothing_changes();
    decision.note_present_values(facts);
    decision.plan.advice = advice::advice(given, &decision);
    Ok(decision)
}

impl Decision {
    fn set_up(&mut self, given: Given<'_>) -> Result<(), BadOverride> {
        if let Backend::Zswap { .. } = self.backend {
            size::refuse_for_zswap(given.overrides)?;
        }
        let choice = algorithm::choose(given, &self.backend)?;
        match choice.chosen.and_then(|i| given.measured.algorithms.get(i)) {
            None => self.give_up(choice.reason.clone()),
            Some(f) if choice.trusted && f.ratio < LEAST_RATIO && !given.overrides.is_explicit() => {
                self.give_up(too_incompressible(f));
            }
            Some(row) => {
                let size = size::size(given.facts, row, given.overrides, choice.trusted)?;
                let chosen = steps::Chosen { row, size, choice: &choice };
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

    /// What programs may read beside the value that a step sets.
    fn note_present_values(&mut self, facts: &Facts) {
        for planned in &mut self.plan.steps {
            let number = |text: &str| text.parse::<u32>().ok();
            // An algorithm's name may look like a number: 842.
            let is_number = matches!(&planned.step, Step::Set { value, .. } if number(value).is_some());
            let now = present::value(facts, &planned.step).and_then(|now| number(&now));
            let now = now.filter(|_| is_number).map(|now| ("now".to_owned(), f64::from(now)));
            planned.reason.numbers.extend(now);
        }
    }

    fn note_if_nothing_changes(&mut self) {
        if self.plan.steps.is_empty() && self.backend != Backend::Nothing {
            self.backend_reason.text += "; every setting already has its measured value";
        }
    }
}

fn too_incompressible(row: &AlgorithmMeasurement) -> Reason {
    let text = format!(
        "this machine's pages hardly compress ({} reaches {:.2} to 1), so compressed swap would cost more time than it gains memory (--backend sets it up all the same)",
        row.label(),
        row.ratio
    );
    Reason::new(text).with("ratio", row.ratio)
}
