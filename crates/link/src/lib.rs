//! The link remedy: the fastest cipher that is still secure between this machine and another one.
//!
//! ```text
//! ssh HOST ─ -vv ─> parse ─> policy ─> plan ─> measure (one ssh for each cipher) ─> decide ─> advice
//!                                                                                   └─> write (text in, text out)
//! ```
//!
//! # Layout
//! - [`parse`]: what `ssh`, the kernel and the configuration files say; text in, data out
//! - [`policy`]: which ciphers and MACs are allowed, and why others are not (pure)
//! - [`plan`]: what is measured, in which order, within 20 s and 200 MB (pure)
//! - [`measure`]: does it, through the system's own `ssh`; the only part that starts processes
//! - [`figures`]: what the samples come to (pure)
//! - [`evidence`]: what a decision rests on; [`decide`]: which cipher (pure); [`limit`]: what keeps it from being faster (pure)
//! - [`compress`]: is compression worth it, by what a real X session moved (pure)
//! - [`far`]: the far end of the link itself, without ssh, where eke is there too
//! - [`advice`]: what else would help, and what is wrong with the link (pure)
//! - [`write`](mod@write): `ssh_config.d` and `ltsp.conf`, text in and text out; whoever calls this writes the files
//!
//! Nothing is left on the far end: it runs `sh`, which is told a few lines on its standard input and ends with it, and eke with that.

pub mod advice;
pub mod compress;
pub mod decide;
mod error;
pub mod evidence;
pub mod far;
pub mod figures;
pub mod limit;
pub mod measure;
pub mod parse;
pub mod plan;
pub mod policy;
pub mod suite;
pub mod write;

pub use error::{Error, Result};
pub use suite::Suite;
