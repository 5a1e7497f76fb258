//! Prefetch: launches are traced and learned, and what the next ones will read is read before they ask. What is decided is in
//! `eke-prefetch-model`, what was learned in `eke-prefetch-store`; here is what acts.
//!
//! # Layout
//! - [`trace`]: what sees execs, exits and pages
//! - [`disk`]: which disk is below a file system, and what it is like, measured
//! - [`fetch`]: reads what is wished into the page cache, in the disk's order, and gives way to others
//! - [`live`]: the process `eke-prefetch`, which has all of these
//! - `io_class`: a thread's I/O class

pub mod disk;
pub mod fetch;
mod io_class;
pub mod live;
pub mod trace;
