//! Names: looking them up, and making what they name.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, Statx, linkat, makedev, mkdirat, mknodat, readlinkat, symlinkat,
};
use rustix::io::Errno;

use super::attributes::halves;
use super::{Caller, Found, Fs, again, attr_of, error};
use crate::backing::at;

/// What is to be made under a name.
#[derive(Debug, Clone, Copy)]
pub enum Kind<'a> {
    /// A directory.
    Directory,
    /// A file, pipe, socket or device: the type's bits of a mode, and the device's number as FUSE compresses it.
    Node(u32, u32),
    /// A symbolic link with this target.
    Symlink(&'a Path),
}

impl Fs {
    /// What a directory has under a name. The kernel knows the node once more.
    ///
    /// # Errors
    /// What statx(2) answers; ESTALE for the directory.
    pub fn lookup(&self, parent: u64, name: &OsStr) -> io::Result<Found> {
        let dir = self.path(parent)?;
        self.look(parent, &dir, name)
    }

    pub(super) fn path(&self, number: u64) -> io::Result<Arc<OwnedFd>> {
        self.nodes.path(&self.nodes.get(number)?)
    }

    pub(super) fn look(&self, parent: u64, dir: &OwnedFd, name: &OsStr) -> io::Result<Found> {
        let statx = at::stat_at(dir, name)?;
        self.nodes.may_serve(&statx)?;
        Ok(self.told(parent, name, &statx))
    }

    /// The kernel is told of it.
    pub(super) fn told(&self, parent: u64, name: &OsStr, statx: &Statx) -> Found {
        let node = self.nodes.learn(statx, parent, name);
        Found { attr: attr_of(node.number, statx), generation: node.generation }
    }

    /// The kernel forgot so many lookups of a node.
    pub fn forget(&self, number: u64, lookups: u64) {
        if let Some(node) = self.nodes.forget(number, lookups).filter(|n| n.is_gone()) {
            self.tier.forget(self.id(&node));
        }
    }

    /// Makes something under a name, for who asks.
    ///
    /// # Errors
    /// What mkdir(2), mknod(2) or symlink(2) answers.
    pub fn make(
        &self,
        caller: &Caller,
        parent: u64,
        name: &OsStr,
        kind: Kind<'_>,
        mode: u32,
        umask: u32,
    ) -> io::Result<Found> {
        let dir = self.path(parent)?;
        let name = at::name(name)?;
        let made =
            caller.makes(&dir, (mode, umask), || make(&dir, name, kind, Mode::from_raw_mode(mode & 0o7777)));
        if !(caller.again && error::is(&made, Errno::EXIST) && is_made(caller, &dir, name, kind)) {
            made?;
        }
        self.look(parent, &dir, name)
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// What readlink(2) answers.
    pub fn readlink(&self, number: u64) -> io::Result<Vec<u8>> {
        Ok(readlinkat(self.path(number)?, c"", Vec::new())?.into_bytes())
    }

    /// One name more for a node.
    ///
    /// # Errors
    /// What link(2) answers.
    pub fn link(&self, caller: &Caller, number: u64, parent: u64, name: &OsStr) -> io::Result<Found> {
        let node = self.nodes.get(number)?;
        let (path, dir) = (self.nodes.path(&node)?, self.path(parent)?);
        let name = at::name(name)?;
        let link = || Ok(linkat(CWD, at::link(path.as_fd()), &dir, name, AtFlags::SYMLINK_FOLLOW)?);
        let linked = caller.acts_on(&[at::stat(&path)?], link);
        let is_it = || at::stat_at(&dir, name).is_ok_and(|s| crate::node::inode(&s).is(&node.inode));
        if !(caller.again && error::is(&linked, Errno::EXIST) && is_it()) {
            linked?;
        }
        self.look(parent, &dir, name)
    }
}

fn make(dir: &OwnedFd, name: &OsStr, kind: Kind<'_>, mode: Mode) -> io::Result<()> {
    match kind {
        Kind::Directory => mkdirat(dir, name, mode)?,
        Kind::Symlink(target) => symlinkat(target, dir, name)?,
        Kind::Node(bits, rdev) => {
            let (major, minor) = halves(rdev);
            mknodat(dir, name, FileType::from_raw_mode(bits), mode, makedev(major, minor))?;
        }
    }
    Ok(())
}

fn is_made(caller: &Caller, dir: &OwnedFd, name: &OsStr, kind: Kind<'_>) -> bool {
    let (file_type, target) = match kind {
        Kind::Directory => (FileType::Directory, None),
        Kind::Symlink(target) => (FileType::Symlink, Some(target)),
        Kind::Node(bits, _) => (FileType::from_raw_mode(bits), None),
    };
    let made = at::stat_at(dir, name).is_ok_and(|s| again::made(&s, file_type, caller, SystemTime::now()));
    let leads = |t: &Path| {
        readlinkat(dir, name, Vec::new()).is_ok_and(|l| l.into_bytes() == t.as_os_str().as_bytes())
    };
    made && target.is_none_or(leads)
}
