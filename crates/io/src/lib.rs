//! Disk latency by class, what it is caused by, and a governor that keeps reads alive under writers.
//!
//! # Layout
//! - [`class`], [`figures`]: what is measured, as data; pure
//! - [`sense`]: how it is measured
//! - [`knobs`]: settings by the names that people know; [`target`]: how fast reads should be
//! - [`verdict`]: what is the matter, and who causes it
//! - [`compare`]: a setting at several values under the same load
//! - [`governor`]: what holds writers back; [`live`]: the process that does it

pub mod class;
pub mod compare;
pub mod figures;
pub mod governor;
pub mod knobs;
pub mod live;
pub mod sense;
pub mod target;
pub mod verdict;

pub use eke_model::histogram::{self, Histogram};

pub use class::{Class, Mode, Operation};
pub use figures::{Device, Latency, Window};
