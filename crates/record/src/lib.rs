//! Recordings of memory behaviour: sampled into one SQLite file, shown as one HTML page, as SVG and as CSV.
//!
//! # Layout
//! - [`subject`]: what is recorded (a command, a process, the machine)
//! - [`sampler`], [`tree`]: the machine's and the processes' part of a [`row::Row`]
//! - [`recording`]: the loop; [`marks`]: named steps, sent over a socket; [`store`] and [`load`]: the file
//! - [`steps`], [`plots`]: a recording as tables and as lines; pure
//! - [`html`], [`csv`]: a recording as a page and as CSV; pure
//!
//! It needs no root and changes nothing on the machine. The file's schema is in `docs/recording.md`.
//!
//! The recorder samples the machine and the command's processes at a fixed interval, writes to SQLite once a second, and takes named steps
//! over a socket. The report is one page without external files.

pub mod csv;
mod error;
pub mod html;
pub mod load;
mod machine;
pub mod marks;
pub mod plots;
pub mod recording;
pub mod row;
pub mod sampler;
pub mod steps;
pub mod store;
pub mod subject;
pub mod tree;

pub use error::{Error, Result};
