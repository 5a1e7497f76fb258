//! Who asks, and acting as that one: what is made belongs to who asked. An unprivileged worker serves its own user and changes
//! nothing.

use std::cell::Cell;
use std::io;
use std::os::fd::OwnedFd;

use fuser::Request;
use rustix::fs::{Mode, Statx};
use rustix::io::Errno;
use rustix::process::{geteuid, umask};
use rustix::thread::{CapabilitySet, UnshareFlags};

use super::error;
use crate::backing::at;
use crate::rights::{self, Proof};

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The process (a thread's number), 0 if it is not known.
    pub pid: u32,
    /// A dead worker was asked the same, and may have done it.
    pub again: bool,
}

/// `FUSE_UNIQUE_RESEND`, Linux 6.9.
const RESENT: u32 = 63;

impl From<&Request> for Caller {
    fn from(request: &Request) -> Self {
        let (uid, gid, pid) = (request.uid(), request.gid(), request.pid());
        Self { uid, gid, pid, again: request.unique().0 >> RESENT == 1 }
    }
}

const NOTHING: CapabilitySet = CapabilitySet::empty();

impl Caller {
    /// Does a root's worker act for somebody else than root?
    pub fn is_other(&self) -> bool {
        self.uid != 0 && geteuid().is_root()
    }

    /// Does `act`, which makes something in a directory, with the caller's ids and umask. `mode` is what was asked for, and the umask.
    ///
    /// # Errors
    /// What `act` answers; EPERM if the ids cannot be taken.
    pub fn makes<T>(
        &self,
        dir: &OwnedFd,
        (mode, mask): (u32, u32),
        act: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        own_umask()?;
        umask(Mode::from_raw_mode(mask & 0o777));
        // The group of what is made may be the directory's.
        let set_gid = mode & libc::S_ISGID != 0;
        let more = if set_gid { self.leaves_set_gid(&at::stat(dir)?) } else { NOTHING };
        self.acts_with(more, act)
    }

    /// Does `act` with the caller's ids and rights: root's, or a user's.
    ///
    /// # Errors
    /// What `act` answers; EPERM if the ids cannot be taken.
    pub fn acts<T>(&self, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.acts_with(NOTHING, act)
    }

    fn acts_with<T>(&self, more: CapabilitySet, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if self.uid == 0 {
            rights::as_root(NOTHING)?;
            return if geteuid().is_root() { rights::with_ids((0, self.gid), act) } else { act() };
        }
        rights::as_user((self.uid, self.gid), more, act)
    }

    /// Does `act` on inodes `of` somebody. What is refused since they are another's (EPERM) is done if the caller's process has
    /// `CAP_FOWNER` over all of them.
    ///
    /// # Errors
    /// What `act` answers; EPERM if the ids cannot be taken.
    pub fn acts_on<T>(&self, of: &[Statx], act: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        self.acts_on_with(NOTHING, of, act)
    }

    /// The same, with more capabilities.
    ///
    /// # Errors
    /// What `act` answers; EPERM if the ids cannot be taken.
    pub fn acts_on_with<T>(
        &self,
        more: CapabilitySet,
        of: &[Statx],
        mut act: impl FnMut() -> io::Result<T>,
    ) -> io::Result<T> {
        let done = self.acts_with(more, &mut act);
        let is_refused = self.is_other() && error::is(&done, Errno::PERM);
        if !is_refused || !self.holds(CapabilitySet::FOWNER, of) {
            return done;
        }
        self.acts_with(more.union(CapabilitySet::FOWNER), act)
    }

    /// Has the caller's process this capability over all of these?
    pub fn holds(&self, capability: CapabilitySet, over: &[Statx]) -> bool {
        self.proof().is_some_and(|proof| over.iter().all(|one| proof.holds(capability, one)))
    }

    fn proof(&self) -> Option<Proof> {
        Proof::of(self.pid, self.uid)
    }

    /// What leaves `S_ISGID` to this inode: nothing for its group's members by their first group, `CAP_FSETID` for its other
    /// members. Who is none loses the bit.
    pub fn leaves_set_gid(&self, of: &Statx) -> CapabilitySet {
        if !self.is_other() || of.stx_gid == self.gid {
            return NOTHING;
        }
        let leaves = |p: &Proof| p.is_in(of.stx_gid) || p.holds(CapabilitySet::FSETID, of);
        if self.proof().as_ref().is_some_and(leaves) { CapabilitySet::FSETID } else { NOTHING }
    }

    /// Does `act`, a change of a file's content, with the caller's right to the last blocks of a disk and past quotas. The file
    /// loses its setuid and setgid bits, but for root where the kernel does not say that they go (`kills`).
    ///
    /// # Errors
    /// What `act` answers.
    pub fn changes<T>(&self, kills: bool, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if self.uid != 0 || !kills {
            return self.acts(act);
        }
        rights::as_root(CapabilitySet::FSETID)?;
        act()
    }
}

/// Does `act`, which writes what was changed in memory (mmap), nobody knows by whom. As natively that takes no bits away.
///
/// # Errors
/// What `act` answers.
pub fn writes_back<T>(act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    rights::as_user(rights::NOBODY, CapabilitySet::FSETID, act)
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
