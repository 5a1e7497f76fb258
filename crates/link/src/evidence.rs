//! The input of a decision and its limits.

use crate::measure::{Bare, Sessions};
use crate::suite::Suite;
use crate::throughput::CipherMeasurement;

/// The input of a decision.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// All measured ciphers.
    pub measured: &'a [CipherMeasurement],
    /// The cipher that ssh's configuration sets.
    pub configured: Option<&'a Suite>,
    /// Several sessions at once.
    pub sessions: Option<&'a Sessions>,
    /// The link without ssh.
    pub bare: Option<&'a Bare>,
    /// All ciphers that both ends offer and the policy allows.
    pub allowed: &'a [Suite],
}
