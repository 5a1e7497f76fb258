//! Facts and figures in, a plan out. Pure.
//!
//! - [`backend`]: zram, zswap, somebody else's, or nothing
//! - [`algorithm`]: the most memory freed within two budgets
//! - [`size`]: how much to declare, and what that will hold
//! - [`knobs`]: swappiness and page-cluster from measured costs
//! - [`advice`]: what eke does not do but the user may want to

pub mod advice;
pub mod algorithm;
pub mod backend;
pub mod knobs;
pub mod size;
pub(crate) mod steps;

use eke_core::config::SwapSettings;
use eke_core::step::{Plan, Reason};
use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::measure::figures::Measured;
use algorithm::Choice;
use backend::Backend;

/// The name of this remedy in plans and the journal.
pub const REMEDY: &str = "swap";

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

/// A wish that cannot be granted: what was asked, why not, what would be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadWish(pub String);

/// Decides.
///
/// # Errors
/// [`BadWish`] for an algorithm or back end that this machine does not have, or a size that makes no sense.
pub fn decide(facts: &Facts, measured: &Measured, wish: &Wish) -> Result<Decision, BadWish> {
    let settings = &wish.settings;
    let (backend, backend_reason) = backend::choose(facts, settings)?;
    let mut plan = Plan { remedy: REMEDY.to_owned(), ..Plan::default() };
    let mut choice = None;
    match &backend {
        Backend::Nothing => {}
        Backend::Adopted { device } => steps::around_adopted(&mut plan, facts, measured, device),
        Backend::Zram | Backend::Zswap { .. } => {
            let chosen = algorithm::choose(measured, &backend, facts.cpus, settings)?;
            if let Some(figures) = chosen.chosen.and_then(|i| measured.algorithms.get(i)) {
                let size = size::size(facts, figures, wish, chosen.trusted)?;
                steps::set_up(
                    &mut plan,
                    facts,
                    measured,
                    wish,
                    &steps::Chosen { backend: &backend, figures, size, choice: &chosen },
                );
            }
            choice = Some(chosen);
        }
    }
    plan.advice.extend(advice::advice(facts, measured, &backend, !plan.steps.is_empty()));
    Ok(Decision { backend, backend_reason, choice, plan })
}

/// What the user wants: the settings, and what the command line said for this once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wish {
    /// From the configuration.
    pub settings: SwapSettings,
    /// A declared size of zram instead of the computed one.
    pub size: Option<eke_core::units::Bytes>,
}
