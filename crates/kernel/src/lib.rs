//! The one crate that changes machine settings, and the readers of `/proc` and `/sys`.
//!
//! # Layout
//! - [`sys`]: the few calls that touch the machine, as a trait; the real one is the only unsafe code
//! - [`root`]: [`root::Root`], the directory that everything is relative to
//! - [`knob`]: the table of every setting that eke can change
//! - [`write`]: the one function that writes a setting
//! - [`parse`]: text to data, one file for each kernel file
//! - [`read`]: a [`eke_model::sample::Sample`] from the machine
//! - [`journal`]: what was changed, from what, to what and why, before it is changed
//! - [`apply`] and [`revert`]: steps to effects, and back; [`script`]: the way back as a shell script
//! - [`discard`]: with which discard option an area is swapped on
//! - [`zram`], [`swap_area`], [`areas`], [`headroom`]: devices, areas, which device an area is, and whether there is room to swap one off
//! - [`boot`]: zswap's settings and eke itself from the next boot on
//! - [`files`]: changes of lasting files (boot loader and the like), with a journal of their own
//! - [`page_cache`]: which pages of a file are in memory, and which are dirty
//! - [`programs`]: what holds the memory, by program
//! - [`lock`]: one process for a thing; [`end`]: when a process ends; [`log`]: what it says meanwhile
//! - [`state`]: small files that eke leaves for itself
//! - [`settings`]: the user's configuration files
//! - [`cgroup`]: groups of processes with little memory
//!
//! Invariants: nothing is written to a setting but by [`write::write_value`]; every lasting effect is in a
//! journal before it happens; every path below is relative to a [`root::Root`].

pub mod apply;
pub mod areas;
pub mod boot;
pub mod cgroup;
pub mod discard;
pub mod end;
pub mod error;
pub mod files;
pub mod headroom;
pub mod journal;
pub mod knob;
pub mod lock;
pub mod log;
pub mod page_cache;
pub mod parse;
pub mod programs;
pub mod read;
pub mod revert;
pub mod root;
pub mod script;
pub mod settings;
pub mod state;
pub mod swap_area;
pub mod sys;
pub mod write;
pub mod zram;

pub use error::Error;
pub use root::Root;
