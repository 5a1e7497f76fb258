//! What tests stand on. A dev-dependency only.
//!
//! - [`fake_kernel`]: a machine over a directory: zram devices, swap areas, settings, with injected faults
//! - [`tree`]: a directory as data, for comparing before and after
//! - [`real`]: what tests of the real kernel share: a lock, and skipping with a reason

pub mod fake_kernel;
pub mod real;
pub mod tree;
