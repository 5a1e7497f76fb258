//! Blocks of a farm in one shared tier: what is asked of an engine (Valkey or Redis), what is offered to it, and what is believed of its
//! answers. The network is in `eke-cache-engine`, another process.
//!
//! # Layout
//! - [`key`]: which block of which version of which file, and its key in the engine
//! - [`record`]: a block as the engine stores it, with its checksum; [`seal`]: encrypted
//! - [`frame`]: messages to the other process and back
//! - [`info`]: the engine's own report; text in, numbers out
//! - [`breaker`], [`decide`]: whether to ask, how long to wait, how much to offer; all pure
//! - [`shared`]: asks under way, answers; `notes`, `offers`: blocks on their way out; `stats`: counters
//!
//! # The way of a block
//! ```text
//! missing here ── asked by group, one frame each ── engine's process ── engine
//!                          │ answer in time            │ late, failed, wrong
//!                          ▼                           ▼
//!                 checked: name, sum or seal     read from the origin ── offered: nobody waits
//! ```
//!
//! # Invariants
//! - A block is believed only if its name is the requested one, of the file's present version, and its checksum or seal is right.
//! - No reader waits longer than its deadline, whatever the other process does.
//! - What goes wrong costs the block, and is counted.

pub mod breaker;
pub mod decide;
pub mod frame;
pub mod info;
pub mod key;
mod notes;
mod offers;
pub mod record;
pub mod seal;
pub mod shared;
mod stats;

pub use key::{FileVersion, Origin};
pub use notes::Offer;
pub use shared::{Link, Shared, SharedOptions};
pub use stats::Stats;
