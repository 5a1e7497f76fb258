//! What a client without privileges sees: the agent's snapshot or its own, and the caches of its user. `eke`, its page and its metrics share it.
//!
//! # Layout
//! - [`agent`]: requests on the agent's socket
//! - [`snapshot`]: the agent's snapshot; if none answers, of the machine as this process samples it
//! - [`caches`]: the compressed page caches that are mounted
//! - [`reading`](mod@reading): both, as metrics and page show them

pub mod agent;
pub mod caches;
pub mod reading;
pub mod snapshot;

pub use caches::{Cache, CacheState};
pub use reading::reading;

/// Seconds since 1970.
pub fn unix_s() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs())
}
