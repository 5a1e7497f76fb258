//! A descriptor for a number.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use eke_model::units::Bytes;
use rustix::fs::{OFlags, Statx};
use rustix::io::Errno;

use super::borders::{Borders, Refused};
use super::forgotten::{Forgotten, mount_of};
use super::hold::Writer;
use super::paths::Paths;
use super::{Access, Entry, Inode, Ledger, Node, Place, ROOT, Table};
use crate::backing::{File, Stamp, at};

/// No directory is deeper. Names of directories that were moved below may form a ring.
const DEEPEST: usize = 1 << 16;
/// How often wrong names are given up before a node counts as lost.
const TRIES: usize = 16;

/// The nodes of a mount.
#[derive(Debug)]
pub struct Nodes {
    table: RwLock<Table>,
    paths: Paths,
    forgotten: Forgotten,
    borders: Borders,
    ledger: Shared,
}

/// What is remembered of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Footprint {
    /// Files and directories that the kernel may ask for.
    pub known: u64,
    /// Memory of what this process knows of them.
    pub tables: Bytes,
    /// Memory of what a next worker must know.
    pub ledger: Bytes,
    /// Their open backing descriptors, at most.
    pub descriptors: u64,
}

/// What a descriptor keeps in the kernel's memory: an open file, its name, and an inode of ext4 (filp, dentry, ext4_inode_cache in
/// `/proc/slabinfo`).
pub const DESCRIPTOR: Bytes = Bytes(2048);

impl Footprint {
    /// All of it.
    pub fn total(&self) -> Bytes {
        Bytes(self.tables.0 + self.ledger.0 + self.descriptors * DESCRIPTOR.0)
    }
}

/// The way down to a node, the last step first.
type Steps = Vec<(Arc<Node>, Place)>;

/// The ledger, which says nothing of itself.
struct Shared(Arc<dyn Ledger>);

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ledger")
    }
}

/// The inode of statx(2)'s answer.
pub(crate) fn inode(statx: &Statx) -> Inode {
    Inode { dev: at::dev(statx), ino: statx.stx_ino, born_ns: Stamp::of(statx).born_ns }
}

impl Nodes {
    /// Below this directory, of which any descriptor will do.
    ///
    /// # Errors
    /// What statx(2) answers.
    pub fn new(root: OwnedFd, ledger: Arc<dyn Ledger>) -> io::Result<Self> {
        let statx = at::stat(&root)?;
        let (node, borders) = (Node::new(ROOT, inode(&statx), 0), Borders::new(at::mount_of(&root, &statx)));
        node.hold().path = Some(Arc::new(root));
        let table = Table::new(Arc::new(node), Arc::clone(&ledger));
        let (paths, forgotten) = (Paths::within_limits(usize::MAX), Forgotten::default());
        Ok(Self { table: RwLock::new(table), paths, forgotten, borders, ledger: Shared(ledger) })
    }

    /// With descriptors of so many nodes at most.
    pub fn with_paths(mut self, most: usize) -> Self {
        self.paths = Paths::within_limits(most);
        self
    }

    /// With descriptors of so many nodes kept after the kernel has forgotten them, or of as many as may be open.
    pub fn remembering(mut self, most: usize) -> Self {
        let root = self.read().get(ROOT).and_then(|root| root.hold().path.clone());
        let place = root.and_then(|root| mount_of(&root));
        self.forgotten = Forgotten::new(most.min(self.paths.most() / 2), place);
        self
    }

    /// Served by the mount with this number. Without it the flags of the directory's own mount count.
    pub fn served_by(&mut self, mount: u64) {
        self.borders = std::mem::replace(&mut self.borders, Borders::new(None)).served_by(mount);
    }

    /// May what was found be served, by the mount that it is on?
    ///
    /// # Errors
    /// EXDEV if that is stricter than the one that serves.
    pub fn may_serve(&self, found: &Statx) -> io::Result<()> {
        self.may_enter(at::mount(found))
    }

    /// On a kernel that does not say which mount a name is on, nothing is refused here: what is reached by a descriptor is asked
    /// again, so such a file is seen and not opened.
    fn may_enter(&self, mount: Option<u64>) -> io::Result<()> {
        let open = mount.is_none_or(|mount| self.borders.are_open_to(mount));
        if open { Ok(()) } else { Err(Errno::XDEV.into()) }
    }

    /// The mounts inside the directory that are not served, as far as they can be seen.
    pub fn refused(&self) -> Vec<Refused> {
        let root = self.read().get(ROOT).and_then(|root| root.hold().path.clone());
        let dir = root.and_then(|root| std::fs::read_link(at::link(root.as_fd())).ok());
        dir.map_or_else(Vec::new, |dir| self.borders.refused(&dir))
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over from a worker: what it noted, in its order, and the descriptors that were kept of nodes without a name.
    /// To be called before the first request.
    pub fn restore<'a>(&self, entries: impl IntoIterator<Item = Entry<'a>>, kept: Vec<(u64, OwnedFd)>) {
        let mut table = self.write();
        entries.into_iter().for_each(|e| table.restore(&e));
        table.restored();
        for (number, fd) in kept {
            let Some(node) = table.get(number) else { continue };
            // A name may be left, if the worker died between keeping and unlinking.
            if at::stat(&fd).is_ok_and(|s| s.stx_nlink == 0) {
                node.set_gone();
            }
            node.set_kept(true);
            node.hold().path = Some(Arc::new(fd));
        }
    }

    /// The nodes that are open, and how often.
    pub fn open(&self) -> Vec<(u64, u64)> {
        self.read().open()
    }

    /// How many are known, and what that takes.
    pub fn footprint(&self) -> Footprint {
        let (forgotten, of_forgotten) = self.forgotten.footprint();
        let paths = self.paths.len();
        let table = self.read();
        Footprint {
            known: table.len() as u64,
            tables: Bytes(table.memory().0 + (of_forgotten + paths * size_of::<usize>()) as u64),
            ledger: self.ledger.0.memory(),
            descriptors: (paths + forgotten) as u64,
        }
    }

    /// The node with this number.
    ///
    /// # Errors
    /// ESTALE if the kernel was never told of it.
    pub fn get(&self, number: u64) -> io::Result<Arc<Node>> {
        self.read().get(number).ok_or_else(stale)
    }

    /// The node of this inode, if the kernel was told of it.
    pub fn find(&self, inode: &Inode) -> Option<Arc<Node>> {
        self.read().find(inode)
    }

    /// Was the kernel told of this inode under this name, and not that it went?
    pub fn is_told(&self, inode: &Inode, parent: u64, name: &OsStr) -> bool {
        let table = self.read();
        table.find(inode).is_some_and(|node| table.is_at(node.number, parent, name))
    }

    /// The kernel is told of what this directory has under this name.
    pub fn learn(&self, statx: &Statx, parent: u64, name: &OsStr) -> Arc<Node> {
        let node = self.write().learn(inode(statx), Place::new(parent, name));
        if let Some(path) = self.forgotten.take(&node.inode) {
            self.put_shared(&node, path);
        }
        node
    }

    /// The kernel forgot so many lookups. Returns the node if it is known no more.
    pub fn forget(&self, number: u64, lookups: u64) -> Option<Arc<Node>> {
        let node = self.write().forget(number, lookups)?;
        self.unkeep(&node);
        let path = node.hold().path.take().filter(|_| !node.is_gone());
        path.into_iter().for_each(|path| self.forgotten.put(&node.inode, path));
        Some(node)
    }

    /// Closes what is kept of forgotten nodes that have no name any more. To be called now and then.
    pub fn close_unlinked(&self) {
        self.forgotten.close_unlinked();
    }

    /// The node has this name too.
    pub fn named(&self, node: &Node, parent: u64, name: &OsStr) {
        self.write().place(node.number, Place::new(parent, name));
    }

    /// The node has this name no more.
    pub fn unnamed(&self, node: &Node, parent: u64, name: &OsStr) {
        self.write().unplace(node.number, parent, name);
    }

    /// A descriptor of the node, with `O_PATH` or any other.
    ///
    /// # Errors
    /// ESTALE if it is not where it was last seen; what openat(2) answers.
    pub fn path(&self, node: &Arc<Node>) -> io::Result<Arc<OwnedFd>> {
        match self.find_path(node) {
            // Others moved it below, but it is open.
            Err(e) if is_elsewhere(&e) => match open_file(node) {
                Some(file) => Ok(self.put(node, at::reopen(file.as_fd(), OFlags::PATH)?)),
                None => Err(e),
            },
            found => found,
        }
    }

    fn find_path(&self, node: &Arc<Node>) -> io::Result<Arc<OwnedFd>> {
        for _ in 0..TRIES {
            match self.walk(node)? {
                Ok(path) => return Ok(path),
                Err((number, place)) => self.give_up(number, &place)?,
            }
        }
        Err(stale())
    }

    /// One of several names was wrong; with one only, the node is lost as long as that is wrong.
    fn give_up(&self, number: u64, place: &Place) -> io::Result<()> {
        let mut table = self.write();
        if table.places(number).len() < 2 {
            return Err(stale());
        }
        table.unplace(number, place.parent, &place.name);
        Ok(())
    }

    /// Up to a node with a descriptor and down again. The inner error is a name that was wrong.
    fn walk(&self, node: &Arc<Node>) -> io::Result<Result<Arc<OwnedFd>, (u64, Place)>> {
        let (mut path, steps) = self.climb(node)?;
        for (node, place) in steps.into_iter().rev() {
            match self.step(&path, &node, &place)? {
                Some(next) => path = self.put(&node, next),
                None => return Ok(Err((node.number, place))),
            }
        }
        Ok(Ok(path))
    }

    /// What lies at the place, if it is the node.
    fn step(&self, dir: &OwnedFd, node: &Node, place: &Place) -> io::Result<Option<OwnedFd>> {
        let path = match at::path(dir, &place.name) {
            Ok(path) => path,
            Err(e) if is_elsewhere(&e) => return Ok(None),
            Err(e) => return Err(e),
        };
        let statx = at::stat(&path)?;
        self.may_enter(at::mount_of(&path, &statx))?;
        Ok(inode(&statx).is(&node.inode).then_some(path))
    }

    fn climb(&self, node: &Arc<Node>) -> io::Result<(Arc<OwnedFd>, Steps)> {
        let mut steps = Vec::new();
        let mut node = Arc::clone(node);
        loop {
            if let Some(path) = cached(&node) {
                return Ok((path, steps));
            }
            let table = self.read();
            let place = table.last_place(node.number).ok_or_else(stale)?;
            let parent = table.get(place.parent).ok_or_else(stale)?;
            steps.push((std::mem::replace(&mut node, parent), place));
            if steps.len() > DEEPEST {
                return Err(stale());
            }
        }
    }

    fn put(&self, node: &Arc<Node>, path: OwnedFd) -> Arc<OwnedFd> {
        self.put_shared(node, Arc::new(path))
    }

    fn put_shared(&self, node: &Arc<Node>, path: Arc<OwnedFd>) -> Arc<OwnedFd> {
        let had = node.hold().path.replace(Arc::clone(&path)).is_some();
        if !had {
            self.paths.add(node);
        }
        path
    }

    /// The file that serves this access, and whether it was opened just now. Kept while the node is open.
    ///
    /// # Errors
    /// What openat(2) answers; ESTALE.
    pub fn file(&self, node: &Arc<Node>, access: Access) -> io::Result<(Arc<File>, bool)> {
        if let Some(file) = node.hold().file(access) {
            return Ok((file, false));
        }
        let path = self.path(node)?;
        node.file(access, || open(&path, access))
    }

    /// The node was opened once more.
    ///
    /// # Errors
    /// It has no name, and the supervisor cannot be reached to keep it.
    pub fn opened(&self, node: &Arc<Node>, access: Access) -> io::Result<()> {
        node.note_opened(Instant::now());
        node.count_open(true);
        if access == Access::Write {
            node.count_writer(true);
        }
        self.read().note(Entry::Opened { node: node.number });
        if !node.is_gone() {
            return Ok(());
        }
        let kept = self.keep(node).map(drop);
        if kept.is_err() {
            self.released(node, access, false);
        }
        kept
    }

    /// It was released once. `again`: an earlier worker may have counted it already, so it stays.
    pub fn released(&self, node: &Node, access: Access, again: bool) {
        let written = access != Access::Write || node.count_writer(false);
        let open = again || node.count_open(false);
        if !again {
            self.read().note(Entry::Released { node: node.number });
        }
        node.close_unused(written);
        if !open {
            self.unkeep(node);
        }
    }

    /// Has the supervisor keep a descriptor of the node; returns whether it did not before.
    ///
    /// # Errors
    /// It cannot be reached.
    pub fn keep(&self, node: &Arc<Node>) -> io::Result<bool> {
        if node.set_kept(true) {
            return Ok(false);
        }
        let kept = match open_file(node) {
            Some(file) => self.ledger.0.keep(node.number, file.as_fd()),
            None => self.path(node).and_then(|path| self.ledger.0.keep(node.number, path.as_fd())),
        };
        if kept.is_err() {
            node.set_kept(false);
        }
        kept.map(|()| true)
    }

    /// It need not be kept any more.
    pub fn unkeep(&self, node: &Node) {
        if node.set_kept(false) {
            self.ledger.0.drop_kept(node.number);
        }
    }
}

fn open_file(node: &Node) -> Option<Arc<File>> {
    let hold = node.hold();
    hold.file(Access::Write).or_else(|| hold.file(Access::Read))
}

fn stale() -> io::Error {
    Errno::STALE.into()
}

fn cached(node: &Node) -> Option<Arc<OwnedFd>> {
    let path = node.hold().path.clone()?;
    node.used.store(true, Relaxed);
    Some(path)
}

fn is_elsewhere(e: &io::Error) -> bool {
    let elsewhere = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::STALE];
    elsewhere.iter().any(|errno| e.raw_os_error() == Some(errno.raw_os_error()))
}

/// A file to write is opened to read as well, if that is allowed: the store may need what lies around what is written.
fn open(path: &OwnedFd, access: Access) -> io::Result<Writer> {
    if access == Access::Read {
        return Ok(Writer {
            file: Arc::new(File::new(at::reopen(path.as_fd(), OFlags::RDONLY)?)),
            readable: true,
        });
    }
    let (fd, readable) = match at::reopen(path.as_fd(), OFlags::RDWR) {
        Err(e) if e.raw_os_error() == Some(Errno::ACCESS.raw_os_error()) => {
            (at::reopen(path.as_fd(), OFlags::WRONLY)?, false)
        }
        other => (other?, true),
    };
    Ok(Writer { file: Arc::new(File::new(fd)), readable })
}

#[cfg(test)]
#[path = "nodes_tests.rs"]
mod tests;
