//! File system ids and effective capabilities of one thread.
//!
//! The ids go back after each act. The capabilities stay as they are until an act needs others, which costs a user who writes and
//! writes nothing: without `SECBIT_NO_SETUID_FIXUP` the kernel would change them with the ids.

use std::cell::Cell;
use std::io;

use rustix::process::geteuid;
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, capabilities_secure_bits,
    set_capabilities, set_capabilities_secure_bits,
};

use super::{KEPT, USERS};

/// What this thread has.
#[derive(Debug, Clone, Copy)]
struct Held {
    sets: CapabilitySets,
    /// The kernel changes the sets with the ids: they are set again then.
    changes: bool,
}

thread_local! {
    static HELD: Cell<Option<Held>> = const { Cell::new(None) };
}

/// Has the capabilities stay as they are when the ids change, in this thread and those that it starts.
pub(super) fn keep_over_ids() -> io::Result<()> {
    let bits = capabilities_secure_bits()?;
    if bits.contains(CapabilitiesSecureBits::NO_SETUID_FIXUP) {
        return Ok(());
    }
    Ok(set_capabilities_secure_bits(bits | CapabilitiesSecureBits::NO_SETUID_FIXUP)?)
}

fn held() -> io::Result<Held> {
    if let Some(held) = HELD.get() {
        return Ok(held);
    }
    let held = Held { sets: capabilities(None)?, changes: keep_over_ids().is_err() };
    HELD.set(Some(held));
    Ok(held)
}

/// Makes these the thread's effective capabilities, of those that it may have.
fn hold(effective: CapabilitySet) -> io::Result<()> {
    let held = held()?;
    let sets = CapabilitySets { effective: effective.intersection(held.sets.permitted), ..held.sets };
    if sets != held.sets {
        set_capabilities(None, sets)?;
        HELD.set(Some(Held { sets, ..held }));
    }
    Ok(())
}

/// Has this thread all of root's rights, without those of `less`.
///
/// # Errors
/// What capset(2) answers.
pub fn as_root(less: CapabilitySet) -> io::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let effective = held()?.sets.effective;
    let has_all = effective.contains(KEPT.intersection(held()?.sets.permitted));
    if has_all && less.is_empty() { Ok(()) } else { hold(KEPT.difference(less)) }
}

/// Does `act` with these ids, user and group, and with [`USERS`] and `more`. Not root's worker does it as it is.
///
/// # Errors
/// What `act` answers; EPERM if the ids cannot be taken.
pub fn as_user<T>(
    ids: (u32, u32),
    more: CapabilitySet,
    act: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    if !geteuid().is_root() {
        return act();
    }
    hold(USERS.union(more))?;
    with_ids(ids, act)
}

/// Does `act` with these ids.
///
/// # Errors
/// What `act` answers; EPERM if the ids cannot be taken.
pub fn with_ids<T>(ids: (u32, u32), act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    if ids == (0, 0) {
        return act();
    }
    let held = held()?;
    let back = Back { held };
    take_ids(ids)?;
    held.again()?;
    let done = act();
    drop(back);
    done
}

impl Held {
    fn again(&self) -> io::Result<()> {
        if self.changes { Ok(set_capabilities(None, self.sets)?) } else { Ok(()) }
    }
}

/// Makes this thread root's again.
struct Back {
    held: Held,
}

impl Drop for Back {
    fn drop(&mut self) {
        if take_ids((0, 0)).and_then(|()| self.held.again()).is_err() {
            // A thread that goes on as somebody else would serve others with that one's rights. Another worker takes over.
            std::process::abort();
        }
    }
}

fn take_ids((uid, gid): (u32, u32)) -> io::Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The file system user, and the effective capabilities, as the kernel says it.
    fn now() -> (u32, CapabilitySet) {
        (set_fs_uid(u32::MAX), capabilities(None).unwrap().effective)
    }

    #[test]
    fn a_users_act_has_that_ones_ids_and_no_right_to_reserved_blocks_quotas_or_set_id_bits() {
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
        };
        std::thread::spawn(act).join().unwrap();
    }

    #[test]
    fn where_the_kernel_changes_capabilities_with_the_ids_they_are_set_again() {
        if !geteuid().is_root() {
            return;
        }
        let act = || {
            let sets = capabilities(None).unwrap();
            HELD.set(Some(Held { sets, changes: true }));
            let more = CapabilitySet::FOWNER;
            let users = as_user((12_345, 12_345), more, || Ok(now())).unwrap();
            assert_eq!(users, (12_345, USERS.union(more) & sets.permitted));
            assert_eq!(now(), (0, USERS.union(more) & sets.permitted));
        };
        std::thread::spawn(act).join().unwrap();
    }
}
