//! All stored results again, of one commit: what `make evidence` runs.
//!
//! - [`attribute`]: of which commit each measurement of a continued result is
//! - [`list`]: the experiments, as data (`experiments.toml`)
//! - [`plan`]: what is left to run, and how long that takes. Pure
//! - [`finished`]: which results are there, of which commit

pub mod attribute;
pub mod finished;
pub mod list;
pub mod plan;
