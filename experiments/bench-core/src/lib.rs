//! What all experiments share.
//!
//! # Layout
//! - [`experiment`]: the trait of all experiments; [`runner`]: plans, measures, reports; [`environment`]: what it needs
//! - [`variants`]: what is compared: today's tools and eke, and how each is arranged on the machine
//! - [`test_image`]: programs and documents on a slow disk
//! - [`cache`]: the directory that keeps images for the next run
//! - [`fault`]: errors that all experiments have
//! - [`disk_reads`]: what was read from a disk
//! - [`process`]: CPU time and memory of one process; text in, numbers out
//! - [`random`]: random numbers from a seed

pub mod cache;
pub mod disk_reads;
pub mod environment;
pub mod experiment;
pub mod fault;
pub mod process;
pub mod random;
pub mod runner;
pub mod test_image;
pub mod variants;

pub use environment::Environment;
pub use experiment::{Experiment, OnFailure, Results, rotation};
pub use runner::{Failure, run};
