//! Changes the machine: the only crate that writes settings. [`eke_linux`] reads them.
//!
//! # Layout
//! - [`knob`]: the table of all settings that eke can change
//! - [`write`]: the function that writes a setting
//! - `sys`: the system calls that change the machine, as a trait that only this crate can call; `sys_inside`: those of a
//!   directory that no link may leave
//! - [`journal`]: records each change before it happens
//! - [`session`] and [`revert`]: apply and undo steps; [`script`]: the undo as a shell script
//! - [`process`]: signals to processes of others; `pidfd`: a signal to one process by a descriptor that names it for good
//! - [`oom_count`]: tells systemd that a service is ended because memory is short
//! - [`zram`], [`swap_area`], [`headroom`]: devices, areas, and whether there is room to swap one off; [`swapoff`]
//!   does that until it is interrupted; [`drain`] removes one while the plan stays applied; [`swapped_off`]: those that somebody else swapped off
//! - [`boot`]: zswap's settings and eke itself from the next boot on
//! - [`files`]: changes of files that outlive the boot (boot loader and the like), with a journal of their own
//! - [`cgroup`]: control groups with a memory limit
//! - [`lock`]: one process per lock file; [`end`]: ends a process with its parent; [`log`]: the bounded log of a
//!   process
//! - [`state`]: small files that eke processes leave for each other
//!
//! Invariants: only [`write::write_value`] writes a setting; every lasting effect is in a journal before it happens;
//! every path is relative to a [`eke_linux::Root`].
//!
//! A root gives no other crate the means to write:
//!
//! ```compile_fail
//! eke_apply::sys::of(&eke_linux::Root::host());
//! ```
//! ```compile_fail
//! use eke_apply::sys::Host;
//! ```
//!
//! # The journal
//! `/run/eke/journal.jsonl`, mode 0600, one `write(2)` at its end for each record, tied to the boot's id. A change
//! goes through `intent` → (`made`) → `done` → `reverted` or `kept`; or it ends as `failed`.
//!
//! - *Intent before effect.* A crash between the two leaves an intent. Undo then reads the setting: it replaces the new
//!   value by the old one, leaves the old one, and reports any other value as somebody else's.
//! - *Reads that act.* Reading `hot_add` adds a device. The existing devices are recorded first, and the kernel gives
//!   the lowest free number, so an unrecorded device can be identified. It is removed only while it has no size.
//! - *Partial plans.* If a step fails, it and the steps before it are undone at once. A step that cannot be undone
//!   stays in the journal for `down`.
//! - *Owner.* An intent names its process. The next plan first undoes the unfinished steps of a dead process, and waits
//!   for a living one. A device with another size belongs to somebody else.
//! - *An area is its device.* `/proc/swaps` shows a path relative to the mount in which swapon(2) was called, and
//!   `/zram1` once that mount namespace is gone. So each area is identified by its block device; only swap files are
//!   compared by path. If this process has other mounts than process 1, it swaps on by the path in process 1
//!   (`/proc/1/root`), so that others see `/dev/zram1`.
//! - *A full file system.* A record that does not fit completely is not written, and its step is undone. The next
//!   record starts a new line.
//! - *Length.* A journal of more than 256 KiB is replaced as a whole by one with the changes in force, when it is opened.
//! - *Versions.* A complete line that this eke does not understand stops it: no change may be forgotten.
//! - *Partial undo.* swapoff needs memory, of the machine and of every limited group with pages in the area. Without it
//!   the change stays in the journal and `down` exits with 5. swapoff(2) runs in a child, because the kernel makes its
//!   caller the OOM killer's first choice.
//! - *Pairs.* Some settings change others: `vm.dirty_bytes` and its ratio, a scheduler and its queue's settings. They
//!   are restored together.
//!
//! Lasting files (`/var/lib/eke/files.jsonl`) work the same way with whole files, renamed into place.

pub mod backing;
pub mod boot;
pub mod cgroup;
pub mod drain;
pub mod end;
pub mod files;
pub mod headroom;
pub mod journal;
pub mod knob;
pub mod lock;
pub mod log;
pub mod oom_count;
mod pidfd;
pub mod process;
pub mod revert;
pub mod script;
pub mod session;
pub mod state;
pub mod swap_area;
pub mod swapoff;
pub mod swapped_off;
mod sys;
mod sys_inside;
pub mod write;
pub mod zram;

/// A simulated machine behind a root, for tests.
#[cfg(feature = "testing")]
pub mod testing {
    pub use crate::backing::device::OpenDevice;
    pub use crate::sys::{FilesOnly, Sys, simulated};
}
