//! Statistics of samples, and random numbers from a seed. Pure.
//!
//! - [`sample`]: median, quantile, mean, standard error, 95 % interval
//! - [`bootstrap`]: the difference of paired runs
//! - [`random`]: the one seeded generator
//!
//! Own code and not `statrs`: that brings linear algebra and distributions for what is here forty lines and a table. Own code and not
//! `fastrand`: results that are kept (replays, request orders, pages of the memory stressor) depend on the exact stream, which a library may
//! change with its version.

pub mod bootstrap;
pub mod random;
pub mod sample;

pub use random::Random;
pub use sample::{interval, mean, median, quantile, standard_error};
