//! What the compressed page cache decides, without a system call: numbers in, decisions out.
//!
//! # Layout
//! - [`admission`]: does it pay? Which files' blocks the store admits, and which files the kernel reads itself
//! - [`size`]: how much memory the store may have now

pub mod admission;
pub mod size;
