//! The process: sees launches, keeps what they read, says what starts next, and reads that before.
//!
//! ```text
//! trace::Watch ─ news ─> running ─ happened ─> predict ─ chances ─┐
//!      │                                                          ├─> plan ─ wishes ─> fetch::Fetcher
//!      └─ launches ─> learn::unite ─> keep ─ sets ────────────────┘
//! ```
//!
//! # Layout
//! - [`options`]: what it is told to do
//! - [`running`]: which programs run, by their processes (pure)
//! - [`pending`]: what was read ahead and has not been used yet (pure)
//! - [`memory`]: what may be filled
//! - [`disks`]: what reads cost where a file is; measured once each disk is quiet
//! - [`library`]: what is kept, or what is known without a file to keep it in
//! - [`ahead`], [`at_exec`]: the two occasions of reading
//! - [`glances`]: whether files are in memory still, by a few of them, which [`sample`] takes (pure)
//! - [`heap`]: what a burst took is given back
//! - [`process`]: the loop; [`reading`]: what it reads; [`say`]: what it says, as lines of JSON
//! - [`once`]: `eke-prefetch ahead PROGRAM...`
//!
//! One thread does all but reading; nothing in it opens a user's file.

mod ahead;
mod at_exec;
mod clock;
mod disks;
mod glances;
mod heap;
mod library;
mod memory;
mod once;
mod options;
mod pending;
mod process;
mod reading;
mod running;
mod sample;
mod say;

pub use clock::{Clock, SystemClock};
pub use once::ahead as ahead_once;
pub use options::Options;
pub use process::{Error, run};
pub use say::{Said, Say};
