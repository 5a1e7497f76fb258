//! Checks of the source tree. [`tree`] reads the modules of a crate, [`resolve`] finds the file that defines a path,
//! [`cycles`] finds files that need each other, [`newer`] syntax that the oldest Rust lacks.

pub mod cycles;
pub mod newer;
pub mod resolve;
mod tokens;
pub mod tree;
