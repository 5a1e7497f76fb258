//! The process that governs: `eke-io govern`, started by the agent, root.
//!
//! - [`levers`]: what there is to turn on a machine
//! - [`hand`]: turns it, by the journal
//! - [`latencies`]: what is told of how long requests took
//! - [`process`]: the loop

pub mod hand;
pub mod latencies;
pub mod levers;
pub mod process;

pub use process::{Error, Options, Said, run};

/// In whose name changes stand in the journal.
pub const OWNER: &str = "io";
