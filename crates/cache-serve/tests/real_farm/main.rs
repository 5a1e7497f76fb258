//! A farm: two mounts of one directory, as two nodes have them, and one shared tier in a real engine. Real kernel, real programs.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "test code")]

#[path = "../common/mod.rs"]
mod common;
mod differ;
#[path = "../common/engine.rs"]
mod engine;
mod example;
mod lost;
mod node;
mod secret;
mod serves;
mod slow;
