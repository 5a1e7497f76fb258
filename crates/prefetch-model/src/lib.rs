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
//! - [`source`]: how launches are seen
//!
//! # Design
//! - *A launch* is an exec until nothing new is touched for a while. Its file set is pages by map and by read, directories, and pages of the file system's
//!   own device (inode tables, directories), in order of first use. Launches are united with weights that age. A page goes after two reviews without a
//!   use, so one small launch removes nothing. A program is its executable and, for interpreters, the script.
//! - *Pages* are 4 KiB on every machine. The kernel's own pages are converted where they are read.
//! - *Predictors* are a trait with a file each, pure, fed with events and a time.
//! - *Choice* is seconds saved per byte, by the measured costs of the file's disk, times the probability. Pages shared by programs count once.

pub mod choose;
pub mod cost;
pub mod file_set;
pub mod happened;
pub mod launch;
pub mod learn;
pub mod pages;
pub mod predict;
pub mod program;
pub mod source;
pub mod trace_text;

pub use cost::DiskCost;
pub use file_set::{FileSet, Kind, Stamp, Touched};
pub use happened::{Event, Happened};
pub use launch::{Ended, Launch};
pub use pages::{PAGE_BYTES, Pages, Span};
pub use program::{Program, ProgramId};
