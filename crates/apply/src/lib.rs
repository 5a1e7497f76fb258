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
//!
//! # The journal
//! `/run/eke/journal.jsonl`, mode 0600, append-only, one `write(2)` for each record, tied to the boot's id. A change is `intent` → (`made`) → `done` →
//! `reverted` or `kept`; or `failed`.
//!
//! - *Intent before effect.* A crash between the two leaves an intent. Undo looks at the machine: it writes the old value back over the new one, leaves
//!   the old one, and reports a third one as somebody else's.
//! - *Reads that act.* `hot_add` makes a device when it is read. The existing devices are recorded first, and the kernel gives the lowest free number, so
//!   an unrecorded device is known. It is removed only while it has no size.
//! - *Half a step.* If a step fails, it and the steps before it are undone at once. What cannot be undone stays in the journal for `down`.
//! - *Owner.* An intent names its process. The next plan first undoes what a dead process left half-done, and waits for a living one. A device with another
//!   size belongs to somebody else.
//! - *An area is its device.* `/proc/swaps` shows a path relative to the mount in which swapon(2) was called, and `/zram1` once that mount namespace is
//!   gone. So each area is found by its block device; only swap files are compared by path. Where this process has other mounts than process 1, it
//!   swaps on by that one's path (`/proc/1/root`), so that others see `/dev/zram1`.
//! - *A full file system.* A record that does not fit as a whole is not written, and its step is undone. The next record starts a new line.
//! - *Versions.* A whole line that this eke does not understand stops it: no change may be forgotten.
//! - *Undo in part.* swapoff needs memory, of the machine and of every limited group with pages in the area. Without it the change stays in the
//!   journal and `down` exits with 5. swapoff(2) runs in a child, because the kernel makes its caller the OOM killer's first choice.
//! - *Undo in pairs.* Some settings change others: `vm.dirty_bytes` and its ratio, a scheduler and its queue's settings. They are restored together.
//!
//! Lasting files (`/var/lib/eke/files.jsonl`) work the same way with whole files, renamed into place.

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
