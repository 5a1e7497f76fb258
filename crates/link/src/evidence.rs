//! What a decision and its limits rest on.

use crate::figures::Measured;
use crate::measure::{Bare, Sessions};
use crate::suite::Suite;

/// What the decision rests on.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// All that was measured.
    pub measured: &'a [Measured],
    /// What somebody, or eke before, has set.
    pub configured: Option<&'a Suite>,
    /// Several at once.
    pub sessions: Option<&'a Sessions>,
    /// The link itself, without ssh.
    pub bare: Option<&'a Bare>,
    /// Everything that both ends offer and the policy allows.
    pub allowed: &'a [Suite],
}
