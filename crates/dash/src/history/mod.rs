//! What is remembered: the last minutes, hour and day, each thinned to its own step.
//!
//! # Layout
//! - [`series`]: the table of what is remembered of a reading
//! - [`thin`]: readings into points of a fixed number. Pure: times are arguments
//! - [`file`]: the same in an SQLite file; [`set_aside`]: what becomes of a broken one

pub mod file;
pub mod series;
pub mod set_aside;
pub mod thin;

pub use thin::{History, Point, SPANS, Span};
