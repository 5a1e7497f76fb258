//! Finds a node by its names: climbs to a node with a descriptor, and opens the names on the way down.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::{FileType, OFlags, Statx};
use rustix::io::Errno;

use super::lost::{ask, is_stale};
use super::{DEEPEST, Nodes, is, open_file, stale};
use crate::backing::at;
use crate::node::{DirEntry, Node};

/// How many wrong names are given up before a node counts as lost.
const TRIES: usize = 16;

/// The path to a node, the last step first.
type Steps = Vec<(Arc<Node>, DirEntry)>;

impl Nodes {
    /// A descriptor of the node, with `O_PATH` or any other.
    ///
    /// # Errors
    /// ESTALE if it is not where it was last seen; those of openat(2).
    pub fn path(&self, node: &Arc<Node>) -> io::Result<Arc<OwnedFd>> {
        match self.find_path(node) {
            // Others moved the backing file, but it is open.
            Err(e) if is_elsewhere(&e) => match open_file(node) {
                Some(file) => Ok(self.put(node, at::reopen(file.as_fd(), OFlags::PATH)?)),
                None => Err(e),
            },
            found => found,
        }
    }

    /// The attributes of the node: of the open file, if there is one, which needs no further descriptor and no name.
    ///
    /// # Errors
    /// Those of [`Nodes::path`] and of statx(2).
    pub fn stat(&self, node: &Arc<Node>) -> io::Result<Statx> {
        match open_file(node) {
            Some(file) => at::stat(&*file),
            None => at::stat(self.path(node)?),
        }
    }

    fn find_path(&self, node: &Arc<Node>) -> io::Result<Arc<OwnedFd>> {
        for _ in 0..TRIES {
            match self.walk(node)? {
                Ok(path) => return Ok(path),
                Err((number, entry)) => self.give_up(number, &entry)?,
            }
        }
        Err(stale())
    }

    /// Gives up a wrong name. A node with only this one is lost while it stays wrong.
    fn give_up(&self, number: u64, entry: &DirEntry) -> io::Result<()> {
        let mut table = self.write();
        if table.names(number).len() < 2 {
            return Err(stale());
        }
        table.remove_name(number, entry.parent, &entry.name);
        Ok(())
    }

    /// Climbs to a node with a descriptor and descends again. The inner error is a wrong name.
    fn walk(&self, node: &Arc<Node>) -> io::Result<Result<Arc<OwnedFd>, (u64, DirEntry)>> {
        let (mut path, steps) = self.climb(node)?;
        for (node, entry) in steps.into_iter().rev() {
            match self.step(&path, &node, &entry)? {
                Some(next) => path = self.put(&node, next),
                None => return Ok(Err((node.number, entry))),
            }
        }
        Ok(Ok(path))
    }

    /// Opens the name, if it is the node's.
    fn step(&self, dir: &OwnedFd, node: &Node, entry: &DirEntry) -> io::Result<Option<OwnedFd>> {
        let found = match found(dir, &entry.name) {
            // The file system believes that a file is there which its server has removed.
            Err(e) if is_stale(&e) && ask(dir, &entry.name).is_ok() => found(dir, &entry.name),
            found => found,
        };
        let (path, statx) = match found {
            Ok(found) => found,
            Err(e) if is_elsewhere(&e) => return Ok(None),
            Err(e) => return Err(e),
        };
        let mount = at::mount_of(&path, &statx);
        self.may_enter(mount, is(&statx, FileType::Directory))?;
        let found = self.inode(&statx).is(&node.inode).then_some(path);
        if found.is_some() {
            self.note_mount(node, mount);
        }
        Ok(found)
    }

    fn climb(&self, node: &Arc<Node>) -> io::Result<(Arc<OwnedFd>, Steps)> {
        let mut steps = Vec::new();
        let mut node = Arc::clone(node);
        loop {
            if let Some(path) = cached(&node) {
                return Ok((path, steps));
            }
            let table = self.read();
            let entry = table.last_name(node.number).ok_or_else(stale)?;
            let parent = table.get(entry.parent).ok_or_else(stale)?;
            steps.push((std::mem::replace(&mut node, parent), entry));
            if steps.len() > DEEPEST {
                return Err(stale());
            }
        }
    }

    fn put(&self, node: &Arc<Node>, path: OwnedFd) -> Arc<OwnedFd> {
        self.put_shared(node, Arc::new(path))
    }

    pub(super) fn put_shared(&self, node: &Arc<Node>, path: Arc<OwnedFd>) -> Arc<OwnedFd> {
        let had = node.descriptors().path.replace(Arc::clone(&path)).is_some();
        if !had {
            self.paths.add(node);
        }
        path
    }
}

impl Nodes {
    /// Keeps this descriptor of a node that has lost its last name, unless it has one.
    pub fn keep_path(&self, node: &Arc<Node>, path: &Arc<OwnedFd>) {
        let has_one = node.descriptors().path.is_some();
        if !has_one {
            self.put_shared(node, Arc::clone(path));
        }
    }

    /// Closes the descriptor of a node's path. It is opened again when it is needed, if the node has a name.
    pub fn close_path(&self, node: &Node) {
        let path = node.descriptors().path.take();
        // Without the lock: closing may wait for a server.
        drop(path);
    }
}

fn cached(node: &Node) -> Option<Arc<OwnedFd>> {
    let path = node.descriptors().path.clone()?;
    node.used.store(true, Relaxed);
    Some(path)
}

fn found(dir: &OwnedFd, name: &OsStr) -> io::Result<(OwnedFd, Statx)> {
    let path = at::path(dir, name)?;
    let statx = at::stat(&path)?;
    Ok((path, statx))
}

fn is_elsewhere(e: &io::Error) -> bool {
    let elsewhere = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::STALE];
    elsewhere.iter().any(|errno| e.raw_os_error() == Some(errno.raw_os_error()))
}
