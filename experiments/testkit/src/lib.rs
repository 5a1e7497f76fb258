//! Shared code of the tests. A dev-dependency only.
//!
//! - [`fake_kernel`]: a simulated machine in a directory: zram devices, swap areas, settings, with injected faults
//! - [`tree`]: a directory as data, to compare before and after
//! - [`passed`]: descriptors in Unix sockets that hang when they are closed
//! - [`program`]: runs programs and captures their output
//! - [`real`]: tests of the real kernel: one lock, and skipping with a reason
//! - [`sshd`]: a real ssh server for one test
//! - [`wait`]: waits for a condition

pub mod fake_kernel;
pub mod passed;
pub mod program;
pub mod real;
pub mod sshd;
pub mod tree;
pub mod wait;
