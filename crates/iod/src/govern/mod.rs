//! The process that governs: `eke-io govern`, as root, started by the agent.
//!
//! - [`tunable`]: the knobs of a disk that the governor may change
//! - [`knob_writer`]: sets them, through the journal
//! - [`latencies`]: request latencies for the agent
//! - [`process`]: the loop

pub mod knob_writer;
pub mod latencies;
pub mod process;
pub mod tunable;

pub use process::{Error, Event, Options, run};

/// The owner of its changes in the journal.
pub const OWNER: &str = "io";
