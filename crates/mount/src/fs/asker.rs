//! Who asks, and acting as that one: what is made belongs to who asked.
//!
//! The kernel has checked permissions already (`default_permissions`), so a root's worker keeps `CAP_DAC_OVERRIDE` while it
//! has another's file system ids. An unprivileged worker serves its own user and changes nothing.

use std::cell::Cell;
use std::io;

use fuser::Request;
use rustix::fs::Mode;
use rustix::process::{geteuid, umask};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags, capabilities, set_capabilities};

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asker {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// A dead worker was asked the same, and may have done it.
    pub again: bool,
}

/// `FUSE_UNIQUE_RESEND`, Linux 6.9.
const RESENT: u32 = 63;

impl From<&Request> for Asker {
    fn from(request: &Request) -> Self {
        Self { uid: request.uid(), gid: request.gid(), again: request.unique().0 >> RESENT == 1 }
    }
}

/// What a root's worker keeps of its capabilities while it has another's ids. Not `CAP_FSETID`: the group's bit of what is
/// made is the asker's.
const STAYS: CapabilitySet =
    CapabilitySet::DAC_OVERRIDE.union(CapabilitySet::DAC_READ_SEARCH).union(CapabilitySet::MKNOD);
/// What setfsuid(2) takes from a user who is not root any more (capabilities(7)), without [`STAYS`].
const GOES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::LINUX_IMMUTABLE)
    .union(CapabilitySet::MAC_OVERRIDE);

impl Asker {
    /// Does `act` with the asker's ids and umask.
    ///
    /// # Errors
    /// What `act` answers; EPERM if the ids cannot be taken.
    pub fn makes<T>(&self, mask: u32, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        own_umask()?;
        umask(Mode::from_raw_mode(mask & 0o777));
        self.acts(act)
    }

    fn acts<T>(&self, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if !geteuid().is_root() || (self.uid, self.gid) == (0, 0) {
            return act();
        }
        let back = Back { capabilities: capabilities(None)? };
        take_ids(self.uid, self.gid)?;
        if self.uid != 0 {
            set_effective(back.capabilities, back.capabilities.effective.difference(GOES).union(STAYS))?;
        }
        act()
    }

    /// Does `act`, a change of a file's content, so that the file loses its setuid and setgid bits if the asker may not
    /// keep them. Root's stay (`CAP_FSETID`).
    ///
    /// # Errors
    /// What `act` answers.
    pub fn changes<T>(&self, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if self.uid == 0 { act() } else { losing_set_id(act) }
    }
}

/// Does `act` without `CAP_FSETID`: a write takes setuid and setgid bits away.
///
/// # Errors
/// What `act` answers.
pub fn losing_set_id<T>(act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    if !geteuid().is_root() {
        return act();
    }
    let back = Back { capabilities: capabilities(None)? };
    set_effective(back.capabilities, back.capabilities.effective.difference(CapabilitySet::FSETID))?;
    act()
}

fn set_effective(sets: CapabilitySets, effective: CapabilitySet) -> io::Result<()> {
    let effective = effective.intersection(sets.permitted);
    Ok(set_capabilities(None, CapabilitySets { effective, ..sets })?)
}

/// Makes this thread root's again.
struct Back {
    capabilities: CapabilitySets,
}

impl Drop for Back {
    fn drop(&mut self) {
        let taken = take_ids(0, 0).and_then(|()| Ok(set_capabilities(None, self.capabilities)?));
        if taken.is_err() {
            // A thread that goes on as somebody else would serve others with that one's rights. Another worker takes over.
            std::process::abort();
        }
    }
}

fn take_ids(uid: u32, gid: u32) -> io::Result<()> {
    let taken = set_fs_gid(gid) == gid && set_fs_uid(uid) == uid;
    if taken { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EPERM)) }
}

/// Sets this thread's file system user, and says which it is then.
#[expect(unsafe_code, reason = "setfsuid(2) is not in rustix")]
fn set_fs_uid(uid: u32) -> u32 {
    // SAFETY: no memory is passed. An id of -1 changes nothing and tells the one in force (setfsuid(2)).
    unsafe {
        libc::setfsuid(uid);
        libc::setfsuid(u32::MAX) as u32
    }
}

/// Sets this thread's file system group, and says which it is then.
#[expect(unsafe_code, reason = "setfsgid(2) is not in rustix")]
fn set_fs_gid(gid: u32) -> u32 {
    // SAFETY: as for setfsuid(2).
    unsafe {
        libc::setfsgid(gid);
        libc::setfsgid(u32::MAX) as u32
    }
}

thread_local! {
    static OWNS_UMASK: Cell<bool> = const { Cell::new(false) };
}

/// A umask belongs to the process, unless a thread has a copy for itself.
fn own_umask() -> io::Result<()> {
    if OWNS_UMASK.get() {
        return Ok(());
    }
    unshare_fs()?;
    OWNS_UMASK.set(true);
    Ok(())
}

#[expect(unsafe_code, reason = "rustix marks it so for its other flags")]
fn unshare_fs() -> io::Result<()> {
    // SAFETY: `FS` is umask, root and working directory; the worker uses neither of the latter two by name.
    Ok(unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FS) }?)
}
