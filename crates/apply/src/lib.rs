//! What eke changes: the one crate that writes machine settings. What the kernel tells is read by [`eke_linux`].
//!
//! # Layout
//! - [`knob`]: the table of every setting that eke can change
//! - [`write`]: the one function that writes a setting
//! - `sys`: the few calls that change the machine, as a trait that only this crate can call
//! - [`journal`]: what was changed, from what, to what and why, before it is changed
//! - [`session`] and [`revert`]: steps to effects, and back; [`script`]: the way back as a shell script
//! - [`zram`], [`swap_area`], [`headroom`]: devices, areas, and whether there is room to swap one off
//! - [`boot`]: zswap's settings and eke itself from the next boot on
//! - [`files`]: changes of lasting files (boot loader and the like), with a journal of their own
//! - [`cgroup`]: groups of processes with little memory
//! - [`lock`]: one process for a thing; [`end`]: when a process ends; [`log`]: what it says meanwhile
//! - [`state`]: small files that eke leaves for itself
//!
//! Invariants: nothing is written to a setting but by [`write::write_value`]; every lasting effect is in a
//! journal before it happens; every path is relative to a [`eke_linux::Root`].
//!
//! A root gives nobody else the means to write:
//!
//! ```compile_fail
//! eke_apply::sys::of(&eke_linux::Root::host());
//! ```
//! ```compile_fail
//! use eke_apply::sys::Host;
//! ```

pub mod boot;
pub mod cgroup;
pub mod end;
pub mod files;
pub mod headroom;
pub mod journal;
pub mod knob;
pub mod lock;
pub mod log;
pub mod revert;
pub mod script;
pub mod session;
pub mod state;
pub mod swap_area;
mod sys;
pub mod write;
pub mod zram;

/// A made-up machine behind a root, for tests.
#[cfg(feature = "testing")]
pub mod testing {
    pub use crate::sys::{FilesOnly, Sys, simulated};
}
