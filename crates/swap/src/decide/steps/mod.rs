//! The steps of a decision, each with its reason.

mod adopted;
mod shared;
mod zram;
mod zswap;

use eke_model::step::Plan;

pub(super) use adopted::around_adopted;
pub use zram::NO_DEVICES;
pub(super) use zswap::could_hold;

use super::algorithm::Choice;
use super::backend::Backend;
use super::size::Size;
use super::{BadOverride, Given};
use crate::measure::figures::AlgorithmFigures;

/// What was chosen.
pub(super) struct Chosen<'a> {
    pub figures: &'a AlgorithmFigures,
    pub size: Size,
    pub choice: &'a Choice,
}

/// # Errors
/// A overrides that this back end cannot grant.
pub(super) fn set_up(
    plan: &mut Plan,
    given: Given<'_>,
    backend: &Backend,
    chosen: &Chosen<'_>,
) -> Result<(), BadOverride> {
    match backend {
        Backend::Zswap { area } => zswap::set_up(plan, given, area, chosen),
        _ => zram::set_up(plan, given, chosen),
    }
}
