//! Keeps the store at the size that memory allows.
//!
//! # Layout
//! - `groups`: where the own group of processes and those above it are: pure
//! - [`signals`]: what memory the machine and the groups have: reads
//! - [`govern`]: the loop that reads, decides ([`eke_cache_policy::size`]) and resizes

pub mod govern;
mod groups;
pub mod signals;

pub use govern::{Governor, Resize};
pub use signals::Reader;
