//! Prefetch: what programs read at their start is learned, which start next is predicted, and what they will read is read before.
//!
//! # Layout
//! - [`program`], [`pages`], [`file_set`], [`launch`]: what is learned, as data
//! - [`happened`]: what predictors learn from, as data
//! - [`cost`]: what reads cost on a disk, as data
//! - [`keep`]: what is learned, in a file
//! - [`choose`]: what is read before, within a budget
//! - [`predict`]: which programs start next; pure
//! - [`replay`]: traces, and what predictors would have made of them; pure
//! - [`learn`]: what tracers see becomes launches and what is known of a program; pure
//! - [`trace`]: what sees execs, exits and pages
//! - [`disk`]: which disk is below a file system, and what it is like, measured
//! - `io_class`: a thread's I/O class; `random`: numbers of a seed
//! - [`live`]: the process `eke-prefetch`, which has all of these
//! - [`fetch`]: reads what is wished into the page cache, in the disk's order, and gives way to others
//!
//! Pure: predictors, replays, choices, the order of reading. Acting: the tracers, the store, the reads. Each is a folder of its
//! own, and decode, decide and act are separate files.

pub mod choose;
pub mod cost;
pub mod disk;
pub mod fetch;
pub mod file_set;
pub mod happened;
mod io_class;
pub mod keep;
pub mod launch;
pub mod learn;
pub mod live;
pub mod pages;
pub mod predict;
pub mod program;
mod random;
pub mod replay;
pub mod trace;

pub use cost::DiskCost;
pub use file_set::{FileSet, Kind, Stamp, Touched};
pub use happened::{Event, Happened};
pub use launch::{Ended, Launch};
pub use pages::{PAGE_BYTES, Pages, Span};
pub use program::{Program, ProgramId};
