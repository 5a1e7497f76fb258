//! Facts and measurements in, plans out: one case per line if possible.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod advice;
mod algorithms;
mod any_machine;
mod backends;
mod cases;
mod distributions;
mod existing;
mod groups;
mod machine;
mod settings;
mod writeback;
