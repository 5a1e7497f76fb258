//! Models of what programs read at launch and which programs start next. Pure: no system calls, no clock, no file.
//!
//! # Layout
//! - [`program`], [`pages`], [`file_set`], [`launch`]: learned data
//! - [`system`]: which paths are of packages; [`version`]: paths with a version in them
//! - [`user_event`]: events, the input of predictors
//! - [`control`]: starts that are left alone, to measure what the others gain
//! - [`pays`]: whether prefetch pays on a machine
//! - [`cost`]: the costs of reading from a disk
//! - [`learn`]: turns trace events into launches, and launches into file sets
//! - [`missing`]: what a launch still read itself
//! - [`predict`]: which programs start next
//! - [`choose`]: selects what to prefetch within a budget
//! - [`trace_text`]: the text format of a trace
//! - [`source`]: how launches are traced
//!
//! # Design
//! - *A launch* runs from an exec until nothing new is touched for a while. Its file set has mapped and read pages, directories, and pages of the
//!   file system's own device (inode tables, directories), in order of first use. Launches are united with weights that age. A page goes after two
//!   reviews without a use, so one small launch removes nothing. A program is its executable and, for interpreters, the script.
//! - *All processes of a launch run its program.* An exec of another program begins another launch. Predictors do not see wrappers.
//! - *Pages* are 4 KiB on every machine. The kernel's own pages are converted where they enter.
//! - *The predictor* is pure: it takes events and a time.
//! - *Choice* ranks pages by seconds saved per byte, from the measured costs of the file's disk, times the probability. Pages that programs share
//!   count once.

pub mod choose;
pub mod control;
pub mod cost;
pub mod file_set;
pub mod launch;
pub mod learn;
pub mod missing;
pub mod pages;
pub mod pays;
pub mod predict;
pub mod program;
pub mod source;
pub mod system;
pub mod trace_text;
pub mod user_event;
pub mod version;

pub use cost::DiskCost;
pub use file_set::{FileSet, Kind, Stamp, Touched, UsedBy};
pub use launch::{Launch, LaunchEnd};
pub use pages::{PAGE_BYTES, Pages, Span};
pub use program::{Program, ProgramId};
pub use user_event::{Event, UserEvent};
