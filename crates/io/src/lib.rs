//! Disk latency by class, what it is caused by, and a governor that keeps reads alive under writers.
//!
//! # Layout
//! - [`histogram`], [`class`], [`figures`]: what is measured, as data; pure
//! - [`sense`]: how it is measured
//! - [`verdict`]: what is the matter, and who causes it

pub mod class;
pub mod figures;
pub mod histogram;
pub mod sense;
pub mod verdict;

pub use class::{Class, Mode, Operation};
pub use figures::{Device, Latency, Window};
pub use histogram::Histogram;
