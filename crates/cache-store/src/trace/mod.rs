//! Traces of requests, and how policies do on them.
//!
//! # Layout
//! - [`generate`]: requests by Zipf's law, scans, loops, and mixes of them
//! - [`replay`]: a policy and a capacity to hit rates, without any bytes
//! - [`parse`]: recorded traces from text

mod generate;
mod parse;
mod replay;

pub use generate::{Zipf, loops, mixed, next_random, scan};
pub use parse::{BadLine, parse};
pub use replay::{Rates, replay};

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// What is asked for.
    pub key: u64,
    /// What it weighs in the cache, bytes: packed.
    pub weight: u32,
}
