//! Replays traces of requests through eviction policies.
//!
//! # Layout
//! - [`generate`]: requests by Zipf's law, scans, loops, and mixes of them
//! - [`parse`](mod@parse): recorded traces from text
//! - [`policy`]: the interface of a policy; S3-FIFO is the store's own, [`Lru`] and [`Sieve`] are for comparison
//! - [`replay`](mod@replay): the hit rates of a policy with a capacity, without any data
//! - [`tiers`]: a page cache over a compressed store, with times by a model

pub mod generate;
mod lru;
mod order;
pub mod parse;
pub mod policy;
pub mod replay;
mod request;
mod sieve;
pub mod tiers;

pub use generate::{Zipf, loops, mixed, next_random, scan};
pub use lru::Lru;
pub use parse::{BadLine, parse};
pub use policy::Policy;
pub use replay::{Rates, replay};
pub use request::Request;
pub use sieve::Sieve;
