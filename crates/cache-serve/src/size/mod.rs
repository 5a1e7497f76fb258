//! Keeps the store at the size that memory allows.
//!
//! # Layout
//! - `groups`: the directories of this process's cgroup and its ancestors: pure
//! - [`signals`]: reads the memory of the machine and of these cgroups
//! - [`govern`]: the loop that samples, decides ([`eke_cache_policy::size`]) and resizes

pub mod govern;
mod groups;
pub mod signals;

pub use govern::{Governor, Resize, Traffic};
pub use signals::SignalsReader;
