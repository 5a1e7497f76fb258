//! A verdict on a disk: what is wrong, and which process causes it.
//!
//! - [`decide`]: the verdict, from measurements; pure
//! - [`threads`]: the tasks of kernel threads; pure
//! - [`activity`]: samples processes, threads and CPU pressure

pub mod activity;
pub mod decide;
pub mod threads;

pub use activity::{Activity, ActivitySampler};
pub use decide::{Evidence, Verdict, VerdictKind, decide};
