//! Tells systemd that a service is ended because memory is short. Without that a service that ends by SIGTERM has ended well: `Restart=on-failure` does
//! not start it again, and `systemctl status` has no reason.
//!
//! systemd-oomd counts its kills in two attributes of the service's control group. When a process of the service ends, systemd reads them, and if
//! `user.oomd_ooms` grew the service's result is `oom-kill` (`unit_check_oomd_kill`, src/core/cgroup.c, systemd 250). They go with the group.

use std::io;

use eke_linux::error::{Error, Result};
use eke_linux::root::Root;

use crate::sys;

/// The processes that were ended. systemd prints it when the other one grew.
const PROCESSES: &str = "user.oomd_kill";
const KILLS: &str = "user.oomd_ooms";
/// A number of 64 bits has at most 20 digits.
const DIGITS: usize = 20;

/// The counts before, to go back to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Before {
    group: String,
    counts: [u64; 2],
}

/// Counts the end of a service with so many processes. `group` is its path below `/sys/fs/cgroup`.
///
/// # Errors
/// The kernel's answer: ENOTSUP before Linux 5.7. A count that is no number is left alone, too.
pub fn count(root: &Root, group: &str, processes: usize) -> Result<Before> {
    let before = Before {
        group: group.to_owned(),
        counts: [read(root, group, PROCESSES)?, read(root, group, KILLS)?],
    };
    let [ended, kills] = before.counts;
    write(root, group, [ended.saturating_add(processes as u64), kills.saturating_add(1)])?;
    Ok(before)
}

/// Sets the counts back, because nothing was ended.
///
/// # Errors
/// The kernel's answer.
pub fn take_back(root: &Root, before: &Before) -> Result<()> {
    write(root, &before.group, before.counts)
}

fn read(root: &Root, group: &str, name: &str) -> Result<u64> {
    let dir = root.path(format!("sys/fs/cgroup/{group}"));
    let mut value = [0; DIGITS];
    let answer = rustix::fs::getxattr(&dir, name, &mut value);
    match answer.map_err(io::Error::from) {
        Ok(length) => number(value.get(..length).unwrap_or_default()).ok_or_else(|| Error::Malformed {
            path: dir,
            message: format!("the attribute {name} is no number"),
        }),
        Err(e) if e.raw_os_error() == Some(libc::ENODATA) => Ok(0),
        Err(e) => Err(Error::io("read the kills of systemd-oomd in", &dir, e)),
    }
}

/// An empty value counts as none, as for systemd.
fn number(value: &[u8]) -> Option<u64> {
    if value.is_empty() { Some(0) } else { std::str::from_utf8(value).ok()?.parse().ok() }
}

/// In this order: systemd reads the processes when the kills grew.
fn write(root: &Root, group: &str, counts: [u64; 2]) -> Result<()> {
    let dir = root.path(format!("sys/fs/cgroup/{group}"));
    for (name, count) in [PROCESSES, KILLS].into_iter().zip(counts) {
        let set = sys::of(root).set_attribute_of(&dir, name, &count.to_string());
        set.map_err(|e| Error::io("count an end, for systemd, in", &dir, e))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_a_number_or_nothing() {
        assert_eq!([number(b""), number(b"0"), number(b"41")], [Some(0), Some(0), Some(41)]);
        assert_eq!([number(b"x"), number(b"-1"), number(b"99999999999999999999")], [None; 3]);
    }
}
