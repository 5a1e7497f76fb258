//! The caller of a request, and acting with its identity: new objects belong to the caller. An unprivileged worker changes no ids, so it makes
//! nothing for other users.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use fuser::Request;
use rustix::fs::{Mode, Statx};
use rustix::io::Errno;
use rustix::process::{geteuid, umask};
use rustix::thread::{CapabilitySet, UnshareFlags};

use super::error;
use crate::backing::{OF_USERS, at, left_within};
use crate::node::taken_by;
use crate::rights::{self, Credentials};

/// The caller of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The thread's number; 0: unknown.
    pub pid: u32,
    /// The request was resent: a dead worker may have executed it.
    pub resent: bool,
}

/// `FUSE_UNIQUE_RESEND`, Linux 6.9.
const RESENT: u32 = 63;

impl From<&Request> for Caller {
    fn from(request: &Request) -> Self {
        let (uid, gid, pid) = (request.uid(), request.gid(), request.pid());
        Self { uid, gid, pid, resent: request.unique().0 >> RESENT == 1 }
    }
}

const NOTHING: CapabilitySet = CapabilitySet::empty();

impl Caller {
    /// True if a root's worker acts for a user other than root.
    pub fn is_other(&self) -> bool {
        self.uid != 0 && geteuid().is_root()
    }

    /// True if the worker cannot take this caller's ids, also root's: what it makes would belong to the user who mounted.
    fn is_foreign(&self) -> bool {
        let own = geteuid();
        !own.is_root() && self.uid != own.as_raw()
    }

    /// True if this caller may have one more descriptor that stays open, of which `newest` is an example: users may not take the
    /// last of them, and none may hold more files than there are descriptors left to others.
    pub fn leaves_room<E>(&self, newest: Result<impl AsFd, E>) -> bool {
        !self.is_other() || newest.is_ok_and(|newest| taken_by(self.uid) < left_within(newest, OF_USERS))
    }

    /// Does `act`, which creates something in a directory, with the caller's ids and umask. The pair is the requested mode
    /// and the umask.
    ///
    /// # Errors
    /// Those of `act`; EPERM if the ids cannot be set; EACCES if it would belong to another user.
    pub fn makes<T>(
        &self,
        dir: &OwnedFd,
        (mode, mask): (u32, u32),
        act: impl FnMut() -> io::Result<T>,
    ) -> io::Result<T> {
        if self.is_foreign() {
            return Err(Errno::ACCESS.into());
        }
        own_umask()?;
        umask(Mode::from_raw_mode(mask & 0o777));
        // A new object may get the directory's group.
        let set_gid = mode & libc::S_ISGID != 0;
        let more = if set_gid { self.leaves_set_gid(&at::stat(dir)?) } else { NOTHING };
        self.acts_with(more, act)
    }

    /// Does `act` with the caller's ids and rights: root's, or a user's.
    ///
    /// # Errors
    /// Those of `act`; EPERM if the ids cannot be set.
    pub fn acts<T>(&self, act: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        self.acts_with(NOTHING, act)
    }

    /// Does `act`, which finds or opens something, as root. If that is refused (EACCES), does it with the caller's ids: a server of
    /// NFS usually has no rights for root (`root_squash`, exports(5)). The kernel has checked the caller's permissions, with all
    /// groups.
    ///
    /// # Errors
    /// Those of `act`; EPERM if the ids cannot be set.
    pub fn sees<T>(&self, mut act: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        let done = act();
        if !self.is_other() || !error::is(&done, Errno::ACCESS) {
            return done;
        }
        self.acts(act)
    }

    fn acts_with<T>(&self, more: CapabilitySet, mut act: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        if self.uid == 0 {
            rights::as_root(NOTHING)?;
            return if geteuid().is_root() { rights::with_ids((0, self.gid), act) } else { act() };
        }
        let ids = (self.uid, self.gid);
        let done = rights::as_user(ids, more, &mut act);
        if !self.is_other() || !error::is(&done, Errno::ACCESS) {
            return done;
        }
        let Some(credentials) = self.credentials() else { return done };
        rights::as_user(ids, more, || rights::in_groups(credentials.groups(), &mut act))
    }

    /// Does `act` on the inodes `of`. If it is refused because they belong to others (EPERM), repeats it with `CAP_FOWNER`,
    /// provided that the caller's process has that over all of them.
    ///
    /// # Errors
    /// Those of `act`; EPERM if the ids cannot be set.
    pub fn acts_on<T>(&self, of: &[Statx], act: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        self.acts_on_with(NOTHING, of, act)
    }

    /// The same, with the capabilities `more`.
    ///
    /// # Errors
    /// Those of `act`; EPERM if the ids cannot be set.
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

    /// True if the caller's process has this capability over all these inodes.
    pub fn holds(&self, capability: CapabilitySet, over: &[Statx]) -> bool {
        self.credentials()
            .is_some_and(|credentials| over.iter().all(|one| credentials.holds(capability, one)))
    }

    fn credentials(&self) -> Option<Credentials> {
        Credentials::of(self.pid, self.uid)
    }

    /// The capability that preserves `S_ISGID` of this inode: none needed if the caller's primary group owns it,
    /// `CAP_FSETID` if another of its groups does. Without it the bit is cleared.
    pub fn leaves_set_gid(&self, of: &Statx) -> CapabilitySet {
        if !self.is_other() || of.stx_gid == self.gid {
            return NOTHING;
        }
        let leaves = |p: &Credentials| p.is_in(of.stx_gid) || p.holds(CapabilitySet::FSETID, of);
        if self.credentials().as_ref().is_some_and(leaves) { CapabilitySet::FSETID } else { NOTHING }
    }

    /// Does `act`, which changes a file's content, with the caller's right to reserved disk blocks and past quotas. The file
    /// loses its setuid and setgid bits, except for root where the kernel does not request that (`kills`).
    ///
    /// # Errors
    /// Those of `act`.
    pub fn changes<T>(&self, kills: bool, mut act: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        if self.uid != 0 || !kills {
            return self.acts(act);
        }
        rights::as_root(CapabilitySet::FSETID)?;
        act()
    }
}

/// Does `act`, which writes back pages changed through a mapping. The writer is unknown. As natively, this clears no set-id
/// bits.
///
/// # Errors
/// Those of `act`.
pub fn writes_back<T>(act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    rights::as_user(rights::NOBODY, CapabilitySet::FSETID, act)
}

thread_local! {
    static OWNS_UMASK: Cell<bool> = const { Cell::new(false) };
}

/// A umask belongs to the process, unless a thread has its own copy.
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
    // SAFETY: `FS` is umask, root and working directory; the worker's threads do not change the latter two.
    Ok(unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FS) }?)
}
