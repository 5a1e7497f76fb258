//! Replays traces through predictors. Pure: traces are text, results are data.
//!
//! - [`predict`]: eke's predictor and others for comparison
//! - [`trace`]: traces, from text and to text
//! - [`purdue`]: a public trace
//! - [`generate`]: generated scenarios
//! - [`measure`]: hits, waste and ranks of every predictor

pub mod generate;
pub mod measure;
pub mod predict;
pub mod purdue;
pub mod trace;

pub use measure::{Row, Settings, replay, replay_with_progress};
pub use trace::{Names, Trace, TraceError};
