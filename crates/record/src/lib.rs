//! Recordings of memory behaviour: sampled into one SQLite file, shown as one HTML page, as SVG and as CSV.
//!
//! # Layout
//! - [`subject`]: what is recorded (a command, a process, the machine)
//! - [`sampler`], [`tree`]: the machine's and the processes' part of a [`row::Row`]
//! - [`recording`]: the loop; [`marks`]: named steps, said over a socket; [`store`] and [`load`]: the file
//! - [`steps`], [`plots`]: what a recording says, as tables and as lines; pure
//! - [`html`], [`csv`]: how that looks; pure
//! - [`output`]: files that are for their owner only
//!
//! Nothing here needs root, and nothing changes the machine. The file's schema is in `docs/recording.md`.
//!
//! The recorder samples the machine and the processes below a command at a fixed pace, writes SQLite once a second, and takes named steps over a socket. The
//! report is one page without any external file.

pub mod csv;
mod date;
mod error;
pub mod html;
pub mod load;
mod machine;
pub mod marks;
pub mod output;
pub mod plots;
pub mod recording;
pub mod row;
pub mod sampler;
pub mod span;
pub mod steps;
pub mod store;
pub mod subject;
pub mod tree;

pub use error::{Error, Result};
