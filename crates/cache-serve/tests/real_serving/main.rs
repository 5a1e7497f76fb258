//! What programs see of a mount: changes made in the backing directory, failing disks, strange files, memory limits. Real kernel, real
//! program.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "test code")]

mod bad_input;
mod coherence;
#[path = "../common/mod.rs"]
mod common;
mod copied_up;
mod listing;
mod memory;
mod overflow;
mod spill;
mod stale;
mod users;
mod waiting;
mod warm;
