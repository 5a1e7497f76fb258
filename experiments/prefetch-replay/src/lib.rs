//! Traces, and what predictors would have made of them. Pure: traces come and go as text, figures are data.
//!
//! - [`predict`]: eke's predictor and others to compare it with
//! - [`trace`]: what a trace is, from text and to text
//! - [`purdue`]: a public trace
//! - [`generate`]: scenarios by rule
//! - [`measure`]: hits, waste and ranks for every predictor

pub mod generate;
pub mod measure;
pub mod predict;
pub mod purdue;
pub mod trace;

pub use measure::{Row, Settings, replay, replay_told};
pub use trace::{Names, Trace, TraceError};
