//! Extended attributes, and with them POSIX ACLs: as the file system below has them.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;

use rustix::buffer::spare_capacity;
use rustix::fs::{XattrFlags, getxattr, listxattr, removexattr, setxattr};
use rustix::io::Errno;

use super::{Asker, Fs, again};
use crate::below::at;

/// The largest value and the longest list (`XATTR_SIZE_MAX`, `XATTR_LIST_MAX`).
const MOST: usize = 65_536;

impl Fs {
    /// The value of an attribute, in at most `most` bytes; all of it if that is 0.
    ///
    /// # Errors
    /// What getxattr(2) answers.
    pub fn getxattr(&self, number: u64, name: &OsStr, most: u32) -> io::Result<Vec<u8>> {
        let mut value = Vec::with_capacity(room(most));
        getxattr(at::link(self.path(number)?.as_fd()), name, spare_capacity(&mut value))?;
        Ok(value)
    }

    /// The names of all, each with a 0 after it, in at most `most` bytes; all of them if that is 0.
    ///
    /// # Errors
    /// What listxattr(2) answers.
    pub fn listxattr(&self, number: u64, most: u32) -> io::Result<Vec<u8>> {
        let mut names = Vec::with_capacity(room(most));
        listxattr(at::link(self.path(number)?.as_fd()), spare_capacity(&mut names))?;
        Ok(names)
    }

    /// Sets one; `flags` as of setxattr(2).
    ///
    /// # Errors
    /// What setxattr(2) answers.
    pub fn setxattr(
        &self,
        asker: &Asker,
        number: u64,
        name: &OsStr,
        value: &[u8],
        flags: i32,
    ) -> io::Result<()> {
        let path = self.path(number)?;
        let flags = XattrFlags::from_bits_retain(flags as u32);
        let set = setxattr(at::link(path.as_fd()), name, value, flags).map_err(io::Error::from);
        let is_set = || self.getxattr(number, name, 0).is_ok_and(|v| v == value);
        if asker.again && again::is(&set, Errno::EXIST) && is_set() { Ok(()) } else { set }
    }

    /// Removes one.
    ///
    /// # Errors
    /// What removexattr(2) answers.
    pub fn removexattr(&self, asker: &Asker, number: u64, name: &OsStr) -> io::Result<()> {
        let removed = removexattr(at::link(self.path(number)?.as_fd()), name).map_err(io::Error::from);
        if asker.again && again::is(&removed, Errno::NODATA) { Ok(()) } else { removed }
    }
}

fn room(most: u32) -> usize {
    match most as usize {
        0 => MOST,
        most => most.min(MOST),
    }
}
