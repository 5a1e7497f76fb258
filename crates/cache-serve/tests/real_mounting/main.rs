//! Where a mount is made, over which directories, and what it permits. Real kernel, real programs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "test code"
)]

mod aside;
mod borders;
#[path = "../common/mod.rs"]
mod common;
mod hidden;
mod place;
mod returns;
mod served;
mod writers;
