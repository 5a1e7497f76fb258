//! A setting at several values under the same load.
//!
//! - [`plan`]: the order of values; pure
//! - [`result`]: the runs, and their differences with confidence intervals; pure
//! - [`setting`]: sets and restores it, through the journal; [`load`]: the load's process; [`run`]: the runs

pub mod load;
pub mod plan;
pub mod result;
pub mod run;
pub mod setting;

use std::io;
use std::path::PathBuf;

use crate::sensor::Refused;

pub use result::{ComparisonResult, Side};
pub use run::{Comparison, RunBegins, run};

/// The owner of its changes in the journal.
pub const OWNER: &str = "io-compare";

/// Why a comparison failed. In any case the setting is restored, or its change stays in the journal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The setting cannot be read or set.
    #[error(transparent)]
    Kernel(#[from] eke_linux::Error),
    /// Latencies cannot be measured.
    #[error(transparent)]
    Sensor(#[from] Refused),
    /// The load cannot be started or waited for.
    #[error("cannot run the load {}: {source}", program.display())]
    Load {
        /// Its program.
        program: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The load failed.
    #[error(
        "the load failed ({status}) at {value}; its messages are above. Nothing was compared, and the setting is restored"
    )]
    Failed {
        /// Its exit status.
        status: std::process::ExitStatus,
        /// The value of the setting.
        value: String,
    },
    /// The disk disappeared.
    #[error("{0} is gone: it was unplugged, or its file was detached")]
    Gone(String),
    /// The load read and wrote nothing.
    #[error("the load used no disk: {0}")]
    Idle(String),
    /// A signal came.
    #[error("interrupted; the setting is restored")]
    Interrupted,
    /// The scheduler has switched the setting off.
    #[error(
        "bfq, the scheduler of {disk}, has switched {knob} off, and a write would switch it on: choose another scheduler first"
    )]
    Off {
        /// The setting.
        knob: &'static str,
        /// The disk.
        disk: String,
    },
    /// The setting has a line for each disk.
    #[error(
        "{0} has a line for each disk, so it has no one default: name the disk and the value (`8:0 enable=0`)"
    )]
    NoDefault(&'static str),
    /// Another comparison runs.
    #[error("another eke ({0}) is at work on this machine; try again when it is done")]
    Busy(String),
}
