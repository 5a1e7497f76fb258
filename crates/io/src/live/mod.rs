//! The process that governs: `eke-io govern`, started by the agent, root.
//!
//! - [`knobs`]: the knobs of a disk that the governor may change
//! - [`hand`]: sets them, through the journal
//! - [`latencies`]: what is told of how long requests took
//! - [`process`]: the loop

pub mod hand;
pub mod knobs;
pub mod latencies;
pub mod process;

pub use process::{Error, Options, Said, run};

/// In whose name changes stand in the journal.
pub const OWNER: &str = "io";
