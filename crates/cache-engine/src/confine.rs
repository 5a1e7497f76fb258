//! What the process gives up before it reads a byte of the network: all rights of root, more memory and files than it needs, writing and
//! executing files (Landlock).

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, geteuid, getrlimit, set_dumpable_behavior, setrlimit,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, Gid, Uid, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

/// A user who owns nothing.
const NOBODY: u32 = 65_534;

/// Memory: answers of the engine and blocks on their way.
const MEMORY: u64 = 256 << 20;

/// Nine connections to each member of a cluster, twice as many while others take their place, and a few files.
const FILES: u64 = 2048;

/// Takes a descriptor that the supervisor has left open.
///
/// # Errors
/// It is not open.
#[expect(unsafe_code, reason = "the descriptor comes by its number, as an argument")]
pub fn descriptor(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the borrow only asks the kernel whether it is open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::io::fcntl_setfd(borrowed, rustix::io::FdFlags::CLOEXEC)?;
    // SAFETY: it is open, and nothing else in this process owns it: it is not a standard stream.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Gives all of it up, for good. The process must have one thread.
///
/// # Errors
/// What the kernel answers. Landlock may be missing.
pub fn confine() -> io::Result<()> {
    set_no_new_privs(true)?;
    if geteuid().is_root() {
        become_nobody()?;
    }
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    for (resource, most) in [(Resource::Core, 0), (Resource::Data, MEMORY), (Resource::Nofile, FILES)] {
        let maximum = getrlimit(resource).maximum.map_or(most, |maximum| maximum.min(most));
        setrlimit(resource, Rlimit { current: Some(maximum), maximum: Some(maximum) })?;
    }
    no_writes();
    Ok(())
}

fn become_nobody() -> io::Result<()> {
    for capability in CapabilitySet::all().iter() {
        // Capabilities that this kernel does not have give EINVAL.
        let _ = remove_capability_from_bounding_set(capability);
    }
    set_thread_groups(&[])?;
    let (gid, uid) = (Gid::from_raw(NOBODY), Uid::from_raw(NOBODY));
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    let none = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}

/// Rights of Landlock's first version: all that write, make or remove, and execute (`include/uapi/linux/landlock.h`).
const WRITES: u64 = 0x1ff3;

/// Denies writing and executing any file from now on. Without Landlock (Linux 5.13) the rights of nobody remain.
#[expect(unsafe_code, reason = "no library here has Landlock's calls")]
fn no_writes() {
    let denied = WRITES.to_ne_bytes();
    // SAFETY: the kernel reads eight bytes, and returns a new descriptor, which is closed below.
    let rules = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, denied.as_ptr(), denied.len(), 0) };
    let number = RawFd::try_from(rules).unwrap_or(-1);
    if number < 0 {
        return;
    }
    // SAFETY: the kernel made it just now.
    let rules = unsafe { OwnedFd::from_raw_fd(number) };
    // SAFETY: it takes a descriptor and changes this thread's rights.
    let _ = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, number, 0) };
    drop(rules);
}
