//! What tests stand on. A dev-dependency only.
//!
//! - [`fake_kernel`]: a machine over a directory: zram devices, swap areas, settings, with injected faults
//! - [`tree`]: a directory as data, for comparing before and after
//! - [`real`]: what tests of the real kernel share: a lock, and skipping with a reason
//! - [`sshd`]: a real ssh server of a test's own
//! - [`wait`]: waiting for a condition

pub mod fake_kernel;
pub mod real;
pub mod sshd;
pub mod tree;
pub mod wait;
