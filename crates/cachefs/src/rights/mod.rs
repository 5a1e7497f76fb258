//! With which rights a root's worker acts.
//!
//! The kernel has checked permissions already (`default_permissions`), by attributes that may be a second old, and without a word
//! on the caller's other groups. So the worker keeps `CAP_DAC_OVERRIDE` for directories and files. Whatever depends on the
//! owner alone, the kernel below checks once more, on the inode as it is now: sticky directories, chmod, explicit times, ACLs.
//!
//! | who acts | file system ids | effective capabilities |
//! | --- | --- | --- |
//! | the worker for itself: lookups, opening, reading | 0 | one of these sets, whichever the thread has |
//! | for root | 0, root's group | [`KEPT`] |
//! | for another user | that one's | [`USERS`] |
//! | for pages that were changed by mmap | [`NOBODY`] | [`USERS`], `CAP_FSETID` |
//! | passthrough | [`NOBODY`], 0 on a network file system | [`USERS`], `CAP_SYS_ADMIN` |
//!
//! So nobody but root writes into an ext4's reserved blocks (by user 0 or `CAP_SYS_RESOURCE`), past a quota (`CAP_SYS_RESOURCE`) or
//! keeps set-user-id bits over a write (`CAP_FSETID`). Through passthrough root does none of that, either.
//!
//! A user's process may have capabilities: root of a container that has a user namespace has them over the ids of that namespace.
//! [`Proof`] asks proc(5) for these, where the plain user was refused.
//!
//! - `thread`: what a thread has, and changes of it; the sets stay until a thread needs others
//! - [`Proof`]: what the process of a request may do
//!
//! # Limits
//! Every process of user 0 counts as root, whatever its capabilities. Set-user-id bits go where the kernel says so for any user.

mod proof;
mod thread;

use std::io;
use std::os::fd::BorrowedFd;

use rustix::process::geteuid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set, set_capabilities,
    set_thread_groups,
};

use crate::backing::is_remote;

pub use proof::Proof;
pub use thread::{as_root, as_user, with_ids};

/// A user who owns nothing.
pub const NOBODY: (u32, u32) = (65_534, 65_534);

/// What the worker acts with for any user: names and files that the kernel has let that one have; devices, which the kernel has
/// checked; and its way to be that user.
pub const USERS: CapabilitySet = CapabilitySet::DAC_OVERRIDE
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::MKNOD)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID);

/// All that a root's worker ever has: besides, what root may do with files; `trusted.*`, passthrough, the watch and the unmount
/// (`CAP_SYS_ADMIN`).
pub const KEPT: CapabilitySet = USERS
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::SETFCAP)
    .union(CapabilitySet::SYS_ADMIN)
    .union(CapabilitySet::SYS_RESOURCE);

/// What the supervisor and the guard of a root's mount have: besides a worker's rights the one to see which files other users'
/// processes have open (`CAP_SYS_PTRACE`), to name who keeps the mount busy, and the one by which each worker drops what it
/// does not need (`CAP_SETPCAP`).
pub const SUPERVISORS: CapabilitySet = KEPT.union(CapabilitySet::SYS_PTRACE).union(CapabilitySet::SETPCAP);

/// Takes from this process all that a worker never needs, for good. To be called before it has threads.
///
/// # Errors
/// What prctl(2), capset(2) or setgroups(2) answers.
pub fn settle() -> io::Result<()> {
    keep_only(KEPT)
}

/// The same for the supervisor, once the mount is made. Workers and the guard are forks of it.
///
/// # Errors
/// As of [`settle`].
pub fn settle_supervisor() -> io::Result<()> {
    keep_only(SUPERVISORS)
}

fn keep_only(kept: CapabilitySet) -> io::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    thread::keep_over_ids()?;
    set_thread_groups(&[])?;
    for capability in CapabilitySet::all().difference(kept).iter() {
        // Those that this kernel does not have are EINVAL.
        let _ = remove_capability_from_bounding_set(capability);
    }
    let permitted = capabilities(None)?.permitted.intersection(kept);
    let inheritable = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective: permitted, permitted, inheritable })?)
}

/// Registers a file for passthrough: the kernel writes to it with the rights of who registers it, whoever writes. On a network file
/// system as root, since the server may refuse others.
///
/// # Errors
/// What `act` answers; EPERM if the rights cannot be taken.
pub fn registering<T>(backing: BorrowedFd<'_>, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let ids = if is_remote(backing) { (0, 0) } else { NOBODY };
    as_user(ids, CapabilitySet::SYS_ADMIN, act)
}
