//! What programs read at their start, which start next, and what is worth reading before. Pure: no system calls, no clock, no file.
//!
//! # Layout
//! - [`program`], [`pages`], [`file_set`], [`launch`]: what is learned, as data
//! - [`happened`]: what predictors learn from, as data
//! - [`cost`]: what reads cost on a disk, as data
//! - [`learn`]: what tracers see becomes launches, and launches become what is known of a program
//! - [`predict`]: which programs start next
//! - [`choose`]: what is read before, within a budget
//! - [`trace_text`]: what happened, as the text of a trace
//! - [`random`]: numbers of a seed
//! - [`source`]: how launches are seen

pub mod choose;
pub mod cost;
pub mod file_set;
pub mod happened;
pub mod launch;
pub mod learn;
pub mod pages;
pub mod predict;
pub mod program;
pub mod random;
pub mod source;
pub mod trace_text;

pub use cost::DiskCost;
pub use file_set::{FileSet, Kind, Stamp, Touched};
pub use happened::{Event, Happened};
pub use launch::{Ended, Launch};
pub use pages::{PAGE_BYTES, Pages, Span};
pub use program::{Program, ProgramId};
