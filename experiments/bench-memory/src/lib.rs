//! Experiments in little memory.
//!
//! # Layout
//! - [`paging`], [`switch`], [`capacity`]: the experiments
//! - [`experiment`]: what they share
//! - [`study`]: the results beside those of the study of 2008
//! - [`guest`]: a session in the small machine, with each peer by its own package where that runs

pub mod capacity;
pub mod experiment;
pub mod guest;
pub mod paging;
pub mod study;
pub mod switch;
