//! The link remedy: the fastest cipher that is still secure between this machine and another one.
//!
//! ```text
//! ssh HOST ─ -vv ─> parse ─> policy ─> plan ─> measure (one ssh for each cipher) ─> decide ─> advice
//!                                                                                   └─> write (text in, text out)
//! ```
//!
//! # Layout
//! - [`parse`]: output of `ssh`, kernel files and configuration files; text in, data out
//! - [`policy`]: the allowed ciphers and MACs, and why others are not allowed (pure)
//! - [`plan`]: what to measure, in which order, within 20 s and 200 MB (pure)
//! - [`measure`]: measures through the system's own `ssh`; the only part that starts processes
//! - [`throughput`]: rates and CPU costs from the samples (pure)
//! - [`evidence`]: the input of a decision; [`decide`]: the cipher (pure); [`limit`]: the bottleneck (pure)
//! - [`compress`]: does compression pay, by the bytes of a real X session (pure)
//! - [`far`]: the far end of the link without ssh, if eke is installed there
//! - [`busy`]: whether a machine has something to do (pure); [`suite`]: a cipher and its packet authentication (pure)
//! - [`advice`]: what else would help, and faults of the link (pure)
//! - [`write`](mod@write): `ssh_config.d` and `ltsp.conf`, text in and text out; the caller writes the files
//!
//! Nothing stays on the far end: a `sh` there reads a script and requests on its standard input, and ends with it, as does an eke that it started.

pub mod advice;
pub mod busy;
pub mod compress;
pub mod decide;
mod error;
pub mod evidence;
pub mod far;
pub mod limit;
pub mod measure;
pub mod parse;
pub mod plan;
pub mod policy;
pub mod suite;
pub mod throughput;
pub mod write;

pub use error::{Error, Result};
pub use suite::Suite;
