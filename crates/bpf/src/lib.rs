//! Compiling and loading BPF programs, for the crates that have some.
//!
//! # Layout
//! - [`compile`](mod@compile): from C to an object, for build scripts
//! - [`btf`]: which tracepoints the kernel describes
//! - `load` (feature `load`): from the object to programs in the kernel
//! - `include/types.h`: integers and the constants of maps, for the programs

pub mod btf;
pub mod compile;
#[cfg(feature = "load")]
pub mod load;
