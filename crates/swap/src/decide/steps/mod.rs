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
use crate::measure::measurements::AlgorithmMeasurement;

/// The chosen algorithm and size.
pub(super) struct Chosen<'a> {
    pub row: &'a AlgorithmMeasurement,
    pub size: Size,
    pub choice: &'a Choice,
}

/// Adds the steps of this back end to the plan.
///
/// # Errors
/// An override that is impossible with this back end.
pub(super) fn set_up(
    plan: &mut Plan,
    given: Given<'_>,
    backend: &Backend,
    chosen: &Chosen<'_>,
) -> Result<(), BadOverride> {
    match backend {
        Backend::Zswap { area } => {
            zswap::set_up(plan, given, area, chosen);
            Ok(())
        }
        _ => zram::set_up(plan, given, chosen),
    }
}
