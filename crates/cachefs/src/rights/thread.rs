//! File system ids and effective capabilities of one thread.
//!
//! The ids are reset after each act. The capabilities stay until an act needs others, so a user who writes repeatedly costs
//! nothing more. That needs `SECBIT_NO_SETUID_FIXUP`: without it the kernel changes capabilities together with ids.

use std::cell::Cell;
use std::io;

use rustix::process::{Gid, geteuid};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, capabilities_secure_bits,
    set_capabilities, set_capabilities_secure_bits, set_thread_groups,
};

use super::{KEPT, USERS};

/// The rights of this thread.
#[derive(Debug, Clone, Copy)]
struct ThreadRights {
    sets: CapabilitySets,
    /// The kernel changes the sets together with the ids, so they are set again.
    changes: bool,
}

thread_local! {
    static RIGHTS: Cell<Option<ThreadRights>> = const { Cell::new(None) };
    /// User and group.
    static IDS: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// Keeps capabilities when ids change, in this thread and those that it starts.
pub(super) fn keep_over_ids() -> io::Result<()> {
    let bits = capabilities_secure_bits()?;
    if bits.contains(CapabilitiesSecureBits::NO_SETUID_FIXUP) {
        return Ok(());
    }
    Ok(set_capabilities_secure_bits(bits | CapabilitiesSecureBits::NO_SETUID_FIXUP)?)
}

fn thread_rights() -> io::Result<ThreadRights> {
    if let Some(rights) = RIGHTS.get() {
        return Ok(rights);
    }
    let rights = ThreadRights { sets: capabilities(None)?, changes: keep_over_ids().is_err() };
    RIGHTS.set(Some(rights));
    Ok(rights)
}

/// Sets the thread's effective capabilities, within the permitted ones.
fn set_effective(effective: CapabilitySet) -> io::Result<()> {
    let rights = thread_rights()?;
    let sets = CapabilitySets { effective: effective.intersection(rights.sets.permitted), ..rights.sets };
    if sets != rights.sets {
        set_capabilities(None, sets)?;
        RIGHTS.set(Some(ThreadRights { sets, ..rights }));
    }
    Ok(())
}

/// Gives this thread all of root's rights except `less`.
///
/// # Errors
/// Those of capset(2).
pub fn as_root(less: CapabilitySet) -> io::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let effective = thread_rights()?.sets.effective;
    let has_all = effective.contains(KEPT.intersection(thread_rights()?.sets.permitted));
    if has_all && less.is_empty() { Ok(()) } else { set_effective(KEPT.difference(less)) }
}

/// Does `act` with these ids (user and group), [`USERS`] and `more`. A worker without root does it as it is.
///
/// # Errors
/// Those of `act`; EPERM if the ids cannot be set.
pub fn as_user<T>(
    ids: (u32, u32),
    more: CapabilitySet,
    act: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    if !geteuid().is_root() {
        return act();
    }
    set_effective(USERS.union(more))?;
    with_ids(ids, act)
}

/// Does `act` with these ids.
///
/// # Errors
/// Those of `act`; EPERM if the ids cannot be set.
pub fn with_ids<T>(ids: (u32, u32), act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let before = IDS.get();
    if ids == before {
        return act();
    }
    let rights = thread_rights()?;
    let reset = ResetIds { rights, before };
    take_ids(ids)?;
    rights.reapply()?;
    let done = act();
    drop(reset);
    done
}

/// Does `act` with these supplementary groups instead of none. A worker without root does it as it is.
///
/// # Errors
/// Those of `act`; those of setgroups(2).
pub fn in_groups<T>(groups: &[u32], act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    if !geteuid().is_root() {
        return act();
    }
    let groups: Vec<Gid> = groups.iter().copied().map(Gid::from_raw).collect();
    let reset = ResetGroups;
    set_thread_groups(&groups)?;
    let done = act();
    drop(reset);
    done
}

/// Takes this thread out of all groups when dropped.
struct ResetGroups;

impl Drop for ResetGroups {
    fn drop(&mut self) {
        if set_thread_groups(&[]).is_err() {
            // As for ids.
            std::process::abort();
        }
    }
}

impl ThreadRights {
    fn reapply(&self) -> io::Result<()> {
        if self.changes { Ok(set_capabilities(None, self.sets)?) } else { Ok(()) }
    }
}

/// Gives this thread its former ids when dropped: root's, or those of an act around.
struct ResetIds {
    rights: ThreadRights,
    before: (u32, u32),
}

impl Drop for ResetIds {
    fn drop(&mut self) {
        if take_ids(self.before).and_then(|()| self.rights.reapply()).is_err() {
            // A thread with another user's ids would serve others with that user's rights. Another worker takes over.
            std::process::abort();
        }
    }
}

fn take_ids((uid, gid): (u32, u32)) -> io::Result<()> {
    let taken = set_fs_gid(gid) == gid && set_fs_uid(uid) == uid;
    if !taken {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    IDS.set((uid, gid));
    Ok(())
}

/// Sets this thread's file system user. Returns the one in force.
#[expect(unsafe_code, reason = "setfsuid(2) is not in rustix")]
fn set_fs_uid(uid: u32) -> u32 {
    // SAFETY: no memory is passed. An id of -1 changes nothing and returns the one in force (setfsuid(2)).
    unsafe {
        libc::setfsuid(uid);
        libc::setfsuid(u32::MAX) as u32
    }
}

/// Sets this thread's file system group. Returns the one in force.
#[expect(unsafe_code, reason = "setfsgid(2) is not in rustix")]
fn set_fs_gid(gid: u32) -> u32 {
    // SAFETY: as for setfsuid(2).
    unsafe {
        libc::setfsgid(gid);
        libc::setfsgid(u32::MAX) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file system user and the effective capabilities, from the kernel.
    fn now() -> (u32, CapabilitySet) {
        (set_fs_uid(u32::MAX), capabilities(None).unwrap().effective)
    }

    #[test]
    fn a_users_act_has_the_users_ids_and_no_right_to_reserved_blocks_quotas_or_set_id_bits() {
        if !geteuid().is_root() {
            return;
        }
        let act = || {
            let all = capabilities(None).unwrap().permitted;
            let users = || as_user((12_345, 12_345), CapabilitySet::empty(), || Ok(now()));
            assert_eq!(users().unwrap(), (12_345, USERS & all));
            assert_eq!(now(), (0, USERS & all), "the ids are root's again");
            as_root(CapabilitySet::empty()).unwrap();
            assert_eq!(now(), (0, KEPT & all));
            as_root(CapabilitySet::FSETID).unwrap();
            assert!(!now().1.contains(CapabilitySet::FSETID));
            assert_eq!(users().unwrap(), (12_345, USERS & all));
            let within = || with_ids((0, 0), || Ok(now().0)).map(|inner| (inner, now().0));
            assert_eq!(as_user((12_345, 12_345), CapabilitySet::empty(), within).unwrap(), (0, 12_345));
            assert_eq!(now().0, 0, "an act in an act");
        };
        std::thread::spawn(act).join().unwrap();
    }

    #[test]
    fn groups_last_for_one_act() {
        if !geteuid().is_root() {
            return;
        }
        let act = || {
            let groups = || rustix::process::getgroups().unwrap();
            set_thread_groups(&[]).unwrap();
            let within =
                as_user((12_345, 12_345), CapabilitySet::empty(), || in_groups(&[7, 8], || Ok(groups())));
            assert_eq!(within.unwrap(), [7, 8].map(Gid::from_raw));
            assert_eq!(groups(), []);
        };
        std::thread::spawn(act).join().unwrap();
    }

    #[test]
    fn capabilities_are_set_again_where_the_kernel_changes_them_with_the_ids() {
        if !geteuid().is_root() {
            return;
        }
        let act = || {
            let sets = capabilities(None).unwrap();
            RIGHTS.set(Some(ThreadRights { sets, changes: true }));
            let more = CapabilitySet::FOWNER;
            let users = as_user((12_345, 12_345), more, || Ok(now())).unwrap();
            assert_eq!(users, (12_345, USERS.union(more) & sets.permitted));
            assert_eq!(now(), (0, USERS.union(more) & sets.permitted));
        };
        std::thread::spawn(act).join().unwrap();
    }
}
