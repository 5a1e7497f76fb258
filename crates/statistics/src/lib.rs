//! Statistics of samples, and random numbers from a seed. Pure.
//!
//! - [`sample`]: median, quantile, range, mean, standard error, 95 % interval
//! - [`bootstrap`]: the difference of paired runs, the ratio of others
//! - [`random`]: the one seeded generator
//!
//! Own code and not `statrs`, which brings linear algebra and distributions: this takes forty lines and a table. Own code and not
//! `fastrand`: stored results (replays, request orders, pages of the memory stressor) depend on the exact stream, which a library may
//! change in a new version.

pub mod bootstrap;
pub mod random;
pub mod sample;

pub use bootstrap::ratio_of_medians;
pub use random::Random;
pub use sample::{interval, mean, median, quantile, range, standard_error};
