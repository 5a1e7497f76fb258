//! All stored results again, of one commit: what `make evidence` runs.
//!
//! - [`list`]: the experiments, as data (`experiments.toml`)
//! - [`plan`]: what is left to run, and how long that takes. Pure
//! - [`finished`]: which results are there, of which commit

pub mod finished;
pub mod list;
pub mod plan;
