//! The four stages that every remedy has.

use crate::model::Model;
use crate::step::Plan;

/// One remedy. It has no start, stop, apply or revert: effects belong to `eke-apply`.
pub trait Remedy {
    /// The way to the machine (the kernel crate's root), which this crate must not know.
    type Machine: ?Sized;
    /// What the machine has and lacks, each missing thing with its reason.
    type Facts;
    /// Figures from the machine.
    type Measured;
    /// The user's settings for this remedy.
    type Settings;
    /// What it believes it gained.
    type Report;
    /// Why a stage failed.
    type Error;

    /// The remedy's name, as in the configuration and the journal.
    fn name(&self) -> &'static str;

    /// Reads what the machine has; changes nothing.
    fn probe(&self, machine: &Self::Machine) -> Result<Self::Facts, Self::Error>;

    /// Measures, bounded in time. What it must change for that is journaled and gone when it returns.
    fn measure(&self, machine: &Self::Machine, facts: &Self::Facts) -> Result<Self::Measured, Self::Error>;

    /// Decides. Pure: the same arguments give the same plan. Fails only for a wish that cannot be granted.
    fn plan(
        &self,
        facts: &Self::Facts,
        measured: &Self::Measured,
        settings: &Self::Settings,
    ) -> Result<Plan, Self::Error>;

    /// Compares what was predicted with what `model` shows.
    fn report(&self, plan: &Plan, model: &Model) -> Self::Report;
}
