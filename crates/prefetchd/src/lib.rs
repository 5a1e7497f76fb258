//! Prefetch: launches are traced and learned, and what the next ones will read is read before they ask. What is decided is in
//! `eke-prefetch-model`, what was learned in `eke-prefetch-store`; here is what acts.
//!
//! ```text
//! trace ─> live ─> probe ─> choose ─> schedule ─> read
//! ```
//!
//! # Layout
//! - [`trace`]: what sees execs, exits and pages
//! - [`live`]: the process `eke-prefetch`: its loop, and the pipeline of the four stages
//! - [`probe`]: are a program's files resident? From a program to a [`Residency`](probe::prober::Residency)
//! - `choose`: what to read. From candidates to [`ReadRequest`](request::ReadRequest)s
//! - [`schedule`]: in which order, and when. From requests to [`Job`](read::Job)s of device queues
//! - [`read`]: worker threads. From jobs to a [`Report`](read::Report)
//! - [`request`]: what the stages pass on; [`file`]: one file of a request
//! - [`disk`]: which disk is below a file system, and what it is like, measured
//! - `io_class`: a thread's I/O class

mod choose;
pub mod disk;
pub mod file;
mod io_class;
pub mod live;
pub mod probe;
pub mod read;
pub mod request;
pub mod schedule;
pub mod trace;
