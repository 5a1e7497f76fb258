//! A setting at several values under the same load.
//!
//! - [`plan`]: which run has which value, in which order; pure
//! - [`outcome`]: what the runs come to, and what differs, with confidence intervals; pure
//! - [`setting`]: sets it and brings it back, by the journal; [`load`]: the load's process; [`run`]: the runs

pub mod load;
pub mod outcome;
pub mod plan;
pub mod run;
pub mod setting;

use std::io;
use std::path::PathBuf;

use crate::sense::Refused;

pub use outcome::{Outcome, Side};
pub use run::{Bench, Told, run};

/// In whose name changes stand in the journal.
pub const OWNER: &str = "io-compare";

/// Why there is no comparison. Whatever it is, the setting is as before, or stands in the journal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The setting cannot be read or set.
    #[error(transparent)]
    Kernel(#[from] eke_linux::Error),
    /// Latencies cannot be measured.
    #[error(transparent)]
    Sense(#[from] Refused),
    /// The load cannot be started or waited for.
    #[error("cannot run the load {}: {source}", program.display())]
    Load {
        /// Its program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The load failed.
    #[error(
        "the load failed ({status}) at {value}; what it said is above. Nothing is compared, and the setting is as before"
    )]
    Failed {
        /// How it ended.
        status: std::process::ExitStatus,
        /// The value at which.
        value: String,
    },
    /// A disk is not there any more.
    #[error("{0} is gone: it was unplugged, or its file was taken away")]
    Gone(String),
    /// The load read and wrote nothing.
    #[error("the load used no disk: {0}")]
    Idle(String),
    /// A signal came; the setting is as before.
    #[error("interrupted; the setting is as it was before")]
    Interrupted,
    /// Somebody else's changes are in force.
    #[error("another eke ({0}) is at work on this machine; try again when it is done")]
    Busy(String),
}
