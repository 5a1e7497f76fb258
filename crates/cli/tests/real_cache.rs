//! The compressed page cache by the built programs: errors, and a mount from start to end.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

#[path = "real_cache/environment.rs"]
mod environment;
#[path = "real_cache/mounted.rs"]
mod mounted;
#[path = "real_cache/spill.rs"]
mod spill;
#[path = "real_cache/start.rs"]
mod start;
