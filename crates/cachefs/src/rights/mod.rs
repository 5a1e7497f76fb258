//! The rights of a root's worker.
//!
//! The kernel has already checked permissions (`default_permissions`), by attributes that may be a second old, and without
//! telling the caller's other groups. So the worker keeps `CAP_DAC_OVERRIDE` for directories and files. Operations that
//! depend on the owner alone are checked again by the backing file system, on the present inode: sticky directories, chmod,
//! explicit times, ACLs.
//!
//! | actor | file system ids | effective capabilities |
//! | --- | --- | --- |
//! | the worker itself: lookups, opening, reading | 0 | one of these sets, whichever the thread has |
//! | for root | 0, root's group | [`KEPT`] |
//! | for another user; lookups and opening that a server refuses to root | the user's | [`USERS`] |
//! | writeback of pages changed through a mapping | [`NOBODY`] | [`USERS`], `CAP_FSETID` |
//! | passthrough | [`NOBODY`]; 0 on a network file system | [`USERS`], `CAP_SYS_ADMIN` |
//!
//! A server does not see capabilities. If it refuses a user's act (EACCES), the act is repeated with all groups of the user's process.
//!
//! So only root can write into the reserved blocks of ext4 (by user 0 or `CAP_SYS_RESOURCE`), past a quota
//! (`CAP_SYS_RESOURCE`), or keep set-user-id bits over a write (`CAP_FSETID`). With passthrough root cannot do these either.
//!
//! A user's process may have capabilities: root of a container with a user namespace has them over the ids of that
//! namespace. [`Credentials`] reads them from proc(5) if the plain user was refused.
//!
//! - `thread`: the rights of a thread; they stay until the thread needs others
//! - [`Credentials`]: what the process of a request may do
//! - `processes`: where that is read
//!
//! # Limits
//! Every process of user 0 counts as root, whatever its capabilities. Set-user-id bits are cleared where the kernel requests
//! it for any user.

mod credentials;
mod processes;
mod thread;

use std::io;
use std::os::fd::BorrowedFd;

use rustix::process::geteuid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set, set_capabilities,
    set_thread_groups,
};

use crate::backing::is_remote;

pub use credentials::Credentials;
pub use processes::show_processes;
pub use thread::{as_root, as_user, in_groups, with_ids};

/// A user who owns nothing.
pub const NOBODY: (u32, u32) = (65_534, 65_534);

/// The worker's capabilities when it acts for any user: names and files that the kernel has allowed; devices, which the
/// kernel has checked; and changing its ids.
pub const USERS: CapabilitySet = CapabilitySet::DAC_OVERRIDE
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::MKNOD)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID);

/// All capabilities of a root's worker: also what root may do with files; `trusted.*`, passthrough, the watch and the
/// unmount (`CAP_SYS_ADMIN`).
pub const KEPT: CapabilitySet = USERS
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::SETFCAP)
    .union(CapabilitySet::SYS_ADMIN)
    .union(CapabilitySet::SYS_RESOURCE);

/// The capabilities of the supervisor and the guard of a root's mount: also to see which files other users' processes have
/// open (`CAP_SYS_PTRACE`), so that a busy mount's users can be named, to make the mount as strict as its directory in sandboxes
/// (`CAP_SYS_CHROOT`, for setns(2)), and to let each worker drop what it does not need (`CAP_SETPCAP`).
pub const SUPERVISORS: CapabilitySet =
    KEPT.union(CapabilitySet::SYS_PTRACE).union(CapabilitySet::SYS_CHROOT).union(CapabilitySet::SETPCAP);

/// Drops all rights that a worker never needs, for good. Call it before the process has threads.
///
/// # Errors
/// Those of prctl(2), capset(2) or setgroups(2).
pub fn settle() -> io::Result<()> {
    keep_only(KEPT)
}

/// The same for the supervisor, after the mount is made. Workers and the guard are forks of it.
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
        // Capabilities that this kernel does not have give EINVAL.
        let _ = remove_capability_from_bounding_set(capability);
    }
    let permitted = capabilities(None)?.permitted.intersection(kept);
    let inheritable = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective: permitted, permitted, inheritable })?)
}

/// Registers a file for passthrough. The kernel writes to it with the rights of the process that registers it. On a network
/// file system that is root, because the server may refuse others.
///
/// # Errors
/// Those of `act`; EPERM if the ids cannot be set.
pub fn registering<T>(backing: BorrowedFd<'_>, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let ids = if is_remote(backing) { (0, 0) } else { NOBODY };
    as_user(ids, CapabilitySet::SYS_ADMIN, act)
}
