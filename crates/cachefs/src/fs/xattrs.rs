//! Extended attributes, and with them POSIX ACLs, as on the backing file system.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::buffer::spare_capacity;
use rustix::fs::{XattrFlags, getxattr, listxattr, removexattr, setxattr};
use rustix::io::Errno;
use rustix::thread::CapabilitySet;

use super::{Caller, Fs, error};
use crate::backing::at;
use crate::rights;

/// The largest value and the longest list (`XATTR_SIZE_MAX`, `XATTR_LIST_MAX`), in bytes.
const MOST: usize = 65_536;

/// Only root reads and sets these.
const TRUSTED: &[u8] = b"trusted.";
const CAPABILITY: &[u8] = b"security.capability";
/// A file's SELinux label. Where SELinux is on, it answers for these itself (vfs_getxattr in fs/xattr.c), so a request that
/// gets here means that it is off.
const LABEL: &[u8] = b"security.selinux";
const ACLS: [&[u8]; 2] = [b"system.posix_acl_access", b"system.posix_acl_default"];

impl Fs {
    /// The value of an attribute, in at most `most` bytes; without a limit if that is 0.
    ///
    /// # Errors
    /// Those of getxattr(2); EOPNOTSUPP instead of ENODATA for a label: ls(1) then asks for no other file's on this mount. ENODATA
    /// instead of EOPNOTSUPP for an ACL: the kernel checks permissions with it, and would refuse all (`fuse_get_acl` in fs/fuse/acl.c).
    pub fn getxattr(&self, caller: &Caller, number: u64, name: &OsStr, most: u32) -> io::Result<Vec<u8>> {
        sees(caller, name)?;
        self.at(number, |node| value_of(&*self.nodes.path(node)?, name, most))
    }

    /// The names that the caller may see, each with a 0 after it, in at most `most` bytes; without a limit if that is 0.
    ///
    /// # Errors
    /// Those of listxattr(2).
    pub fn listxattr(&self, caller: &Caller, number: u64, most: u32) -> io::Result<Vec<u8>> {
        let mut names = Vec::with_capacity(MOST);
        if !caller.is_other() {
            rights::as_root(CapabilitySet::empty())?;
        }
        listxattr(at::link(self.path(number)?.as_fd()), spare_capacity(&mut names))?;
        if caller.is_other() {
            names = without_trusted(&names);
        }
        if names.len() > room(most) { Err(Errno::RANGE.into()) } else { Ok(names) }
    }

    /// Sets an attribute; `flags` as of setxattr(2).
    ///
    /// # Errors
    /// Those of setxattr(2); EOPNOTSUPP for attributes that only root sets.
    pub fn setxattr(
        &self,
        caller: &Caller,
        number: u64,
        name: &OsStr,
        value: &[u8],
        flags: i32,
    ) -> io::Result<()> {
        let (node, path) = (self.nodes.get(number)?, self.path(number)?);
        let flags = XattrFlags::from_bits_retain(flags as u32);
        let set = || Ok(setxattr(at::link(path.as_fd()), name, value, flags)?);
        let set = self.keeping_blocks(&node, &path, || change(caller, &path, (name, false), set));
        let is_set = || self.getxattr(caller, number, name, 0).is_ok_and(|v| v == value);
        if caller.resent && error::is(&set, Errno::EXIST) && is_set() { Ok(()) } else { set }
    }

    /// Removes an attribute.
    ///
    /// # Errors
    /// Those of removexattr(2); EOPNOTSUPP for attributes that only root sets.
    pub fn removexattr(&self, caller: &Caller, number: u64, name: &OsStr) -> io::Result<()> {
        let (node, path) = (self.nodes.get(number)?, self.path(number)?);
        let remove = || Ok(removexattr(at::link(path.as_fd()), name)?);
        let removed = self.keeping_blocks(&node, &path, || change(caller, &path, (name, true), remove));
        if caller.resent && error::is(&removed, Errno::NODATA) { Ok(()) } else { removed }
    }
}

fn value_of(path: &OwnedFd, name: &OsStr, most: u32) -> io::Result<Vec<u8>> {
    let mut value = Vec::with_capacity(room(most));
    match getxattr(at::link(path.as_fd()), name, spare_capacity(&mut value)) {
        Err(Errno::NODATA) if name.as_bytes() == LABEL => Err(Errno::OPNOTSUPP.into()),
        Err(Errno::OPNOTSUPP) if ACLS.contains(&name.as_bytes()) => Err(Errno::NODATA.into()),
        got => got.map(|_| value).map_err(io::Error::from),
    }
}

/// Changes an attribute as the caller. Among `system.*` the kernel checks ACLs and leaves the others to the file system,
/// which would see the worker's rights; so a user may change only ACLs. If a user writes to a file with capabilities, the
/// kernel removes these in that user's name; it refuses a user who requests that.
fn change(
    caller: &Caller,
    path: &OwnedFd,
    (name, removes): (&OsStr, bool),
    act: impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    let (bytes, statx) = (name.as_bytes(), at::stat(path)?);
    let acl = ACLS.contains(&bytes);
    if caller.is_other() && bytes.starts_with(b"system.") && !acl {
        return Err(Errno::OPNOTSUPP.into());
    }
    let set_gid = u32::from(statx.stx_mode) & libc::S_ISGID != 0;
    let more = if acl && set_gid {
        caller.leaves_set_gid(&statx)
    } else if bytes == CAPABILITY && (removes || caller.holds(CapabilitySet::SETFCAP, &[statx])) {
        CapabilitySet::SETFCAP
    } else {
        CapabilitySet::empty()
    };
    caller.acts_on_with(more, &[statx], act)
}

/// # Errors
/// ENODATA, as for an attribute that does not exist.
fn sees(caller: &Caller, name: &OsStr) -> io::Result<()> {
    if !name.as_bytes().starts_with(TRUSTED) {
        return Ok(());
    }
    if caller.is_other() { Err(Errno::NODATA.into()) } else { rights::as_root(CapabilitySet::empty()) }
}

fn without_trusted(names: &[u8]) -> Vec<u8> {
    names.split_inclusive(|b| *b == 0).filter(|name| !name.starts_with(TRUSTED)).flatten().copied().collect()
}

fn room(most: u32) -> usize {
    match most as usize {
        0 => MOST,
        most => most.min(MOST),
    }
}
