//! Looking names up, and creating objects.

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
use super::{Caller, FoundNode, Fs, attr_of, error, resent};
use crate::backing::at;
use crate::node::Node;

/// The object to create.
#[derive(Debug, Clone, Copy)]
pub enum NewNode<'a> {
    /// A directory.
    Directory,
    /// A file, pipe, socket or device: the type bits of a mode, and the device number in FUSE's encoding.
    Node(u32, u32),
    /// A symbolic link with this target.
    Symlink(&'a Path),
}

impl Fs {
    /// Looks a name up in a directory. Counts one more lookup of the node by the kernel.
    ///
    /// # Errors
    /// Those of statx(2); ESTALE for the directory.
    pub fn lookup(&self, parent: u64, name: &OsStr) -> io::Result<FoundNode> {
        self.at(parent, |dir| self.look_up(parent, &*self.nodes.path(dir)?, name))
    }

    pub(super) fn path(&self, number: u64) -> io::Result<Arc<OwnedFd>> {
        self.nodes.path(&self.nodes.get(number)?)
    }

    /// Does `act` at a node, and notes if the file system does not know that any more.
    ///
    /// # Errors
    /// Those of `act`; ESTALE.
    pub(super) fn at<T>(&self, number: u64, act: impl FnOnce(&Arc<Node>) -> io::Result<T>) -> io::Result<T> {
        let node = self.nodes.get(number)?;
        let done = act(&node);
        self.nodes.lost_if_stale(&node, done)
    }

    pub(super) fn look_up(&self, parent: u64, dir: &OwnedFd, name: &OsStr) -> io::Result<FoundNode> {
        let statx = at::stat_at(dir, name)?;
        self.nodes.may_serve(&statx)?;
        self.learned(parent, name, &statx)
    }

    /// Counts a lookup of the node that the kernel learns about.
    ///
    /// # Errors
    /// EXDEV for a directory that the kernel knows at another place.
    pub(super) fn learned(&self, parent: u64, name: &OsStr, statx: &Statx) -> io::Result<FoundNode> {
        let node = self.nodes.learn(statx, parent, name)?;
        Ok(FoundNode { attr: attr_of(node.number, statx), generation: node.generation })
    }

    /// The kernel forgot `lookups` lookups of a node.
    pub fn forget(&self, number: u64, lookups: u64) {
        self.end_lingering(number);
        let Some(node) = self.nodes.forget(number, lookups) else { return };
        self.passthrough.opens.forget(node.number);
        if node.is_gone() {
            self.tier.forget(self.id(&node));
        }
    }

    /// Creates an object for the caller.
    ///
    /// # Errors
    /// Those of mkdir(2), mknod(2) or symlink(2).
    pub fn make(
        &self,
        caller: &Caller,
        parent: u64,
        name: &OsStr,
        kind: NewNode<'_>,
        mode: u32,
        umask: u32,
    ) -> io::Result<FoundNode> {
        let dir = caller.sees(|| self.path(parent))?;
        let name = at::name(name)?;
        let make = || make(&dir, name, kind, Mode::from_raw_mode(mode & 0o7777));
        let made = self.at(parent, |_| caller.makes(&dir, (mode, umask), make));
        if !(caller.resent && error::is(&made, Errno::EXIST) && is_made(caller, &dir, name, kind)) {
            made?;
        }
        caller.sees(|| self.look_up(parent, &dir, name))
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// Those of readlink(2).
    pub fn readlink(&self, number: u64) -> io::Result<Vec<u8>> {
        self.at(number, |node| Ok(readlinkat(self.nodes.path(node)?, c"", Vec::new())?.into_bytes()))
    }

    /// Adds a name to a node.
    ///
    /// # Errors
    /// Those of link(2).
    pub fn link(&self, caller: &Caller, number: u64, parent: u64, name: &OsStr) -> io::Result<FoundNode> {
        let node = self.nodes.get(number)?;
        let (path, dir) = (self.nodes.path(&node)?, self.path(parent)?);
        let name = at::name(name)?;
        let link = || Ok(linkat(CWD, at::link(path.as_fd()), &dir, name, AtFlags::SYMLINK_FOLLOW)?);
        let owned = [at::stat(&path)?];
        let linked = self.keeping_blocks(&node, &path, || caller.acts_on(&owned, link));
        let is_it = || at::stat_at(&dir, name).is_ok_and(|s| self.nodes.inode(&s).is(&node.inode));
        if !(caller.resent && error::is(&linked, Errno::EXIST) && is_it()) {
            linked?;
        }
        caller.sees(|| self.look_up(parent, &dir, name))
    }
}

fn make(dir: &OwnedFd, name: &OsStr, kind: NewNode<'_>, mode: Mode) -> io::Result<()> {
    match kind {
        NewNode::Directory => mkdirat(dir, name, mode)?,
        NewNode::Symlink(target) => symlinkat(target, dir, name)?,
        NewNode::Node(bits, rdev) => {
            let (major, minor) = halves(rdev);
            mknodat(dir, name, FileType::from_raw_mode(bits), mode, makedev(major, minor))?;
        }
    }
    Ok(())
}

fn is_made(caller: &Caller, dir: &OwnedFd, name: &OsStr, kind: NewNode<'_>) -> bool {
    let (file_type, target) = match kind {
        NewNode::Directory => (FileType::Directory, None),
        NewNode::Symlink(target) => (FileType::Symlink, Some(target)),
        NewNode::Node(bits, _) => (FileType::from_raw_mode(bits), None),
    };
    let made = at::stat_at(dir, name).is_ok_and(|s| resent::made(&s, file_type, caller, SystemTime::now()));
    let leads = |t: &Path| {
        readlinkat(dir, name, Vec::new()).is_ok_and(|l| l.into_bytes() == t.as_os_str().as_bytes())
    };
    made && target.is_none_or(leads)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use eke_cache_policy::admission::{Admission, PassthroughMode};

    use super::*;
    use crate::fs::Options;
    use crate::node::{Entry, NoLedger, ROOT};
    use crate::passthrough::Passthrough;
    use crate::tier::Tier;

    /// Two nodes of which a mapping may be left, in the form of `passthrough::slots`: node, id, `LEAVES`.
    fn left(nodes: [u64; 2]) -> std::fs::File {
        let mut slots = tempfile::tempfile().unwrap();
        for node in nodes {
            slots.write_all(&node.to_le_bytes()).unwrap();
            slots.write_all(&[7, 0, 0, 0, 2, 0, 0, 0]).unwrap();
        }
        slots
    }

    #[test]
    fn the_mark_of_a_mapping_goes_with_the_node_that_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let root = std::fs::File::open(dir.path()).unwrap().into();
        let fs = Fs::new(root, Arc::new(Tier::default()), Arc::new(NoLedger), Options::default()).unwrap();
        let dev = fs.nodes.get(ROOT).unwrap().inode.dev;
        // One more than are kept in doubt after a take-over.
        let (first, last) = (2, 1026);
        let name = OsStr::new("file");
        let known = |n| Entry::Known { node: n, parent: ROOT, name, dev, ino: n, born_ns: 0, generation: 0 };
        fs.nodes.restore((first..=last).map(known), Vec::new());
        let slots = Some(left([first, last]));
        let fs =
            fs.with_passthrough(Passthrough::new(Arc::new(Admission::new(PassthroughMode::Auto)), slots));
        let leaves = |fs: &Fs| [first, last].map(|node| fs.passthrough.opens.leaves(node));
        assert_eq!(leaves(&fs), [true, true]);
        (first..=last).for_each(|node| fs.forget(node, 1));
        assert_eq!(leaves(&fs), [false, true], "the last one is in doubt");
    }
}
