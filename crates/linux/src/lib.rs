//! What the kernel tells: parsers of its text, and readers of `/proc` and `/sys`. Nothing here writes.
//!
//! # Layout
//! - [`root`]: [`root::Root`], the directory that everything is relative to; [`source`]: the few calls that read it, as a trait
//! - [`parse`]: text to data, one file for each kernel file
//! - [`sampler`]: a [`eke_model::sample::Sample`] from the machine, for every program; [`hot_file`]: a file that stays open for that
//! - [`read`]: single facts of the machine: swap areas, processes, groups, the battery
//! - [`areas`], [`zram`], [`discard`]: which device a swap area is, the zram devices, with which discard option an area is swapped on
//! - [`page_cache`]: which pages of a file are in memory, and which are dirty
//! - [`programs`]: what holds the memory, by program
//! - [`cgroup`]: which version of groups the machine has, and whose a group of eke's is
//! - [`settings`]: the user's configuration files

pub mod areas;
pub mod cgroup;
pub mod discard;
pub mod error;
pub mod hot_file;
pub mod page_cache;
pub mod parse;
pub mod programs;
pub mod read;
pub mod root;
pub mod sampler;
pub mod settings;
pub mod source;
pub mod zram;

pub use error::Error;
pub use root::Root;
