//! From a node's number to a descriptor. `walk` opens descriptors of paths; `lost`: what a server has removed or replaced.

mod lost;
mod walk;

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use eke_linux::magic;
use eke_model::units::Bytes;
use rustix::fs::{AtFlags, FileType, OFlags, Statx, StatxFlags, fstatfs, statx};
use rustix::io::Errno;

use super::descriptors::Writer;
use super::forgotten::{Forgotten, mount_of};
use super::paths::Paths;
use super::submounts::{RefusedMount, Submounts};
use super::views::View;
use super::{Access, DirEntry, Entry, Inode, Ledger, Node, ROOT, Table, is_foreign};
use crate::backing::{File, Stamp, at, is_of_removed_subvolume};
use crate::sync::lock;

/// The nodes of a mount.
#[derive(Debug)]
pub struct Nodes {
    table: RwLock<Table>,
    paths: Paths,
    forgotten: Forgotten,
    submounts: Submounts,
    /// The device of the root.
    device: u64,
    /// A node lies, or may lie, on another mount.
    any_elsewhere: AtomicBool,
    /// Directories that were found at another place than where the kernel knows them.
    left: Mutex<HashSet<u64>>,
    ledger: LedgerRef,
}

/// More are noted the next time.
const MOST_LEFT: usize = 256;

/// No directory is deeper. The names of moved directories may form a ring.
const DEEPEST: usize = 1 << 16;

/// The memory of what is known about files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Footprint {
    /// Files and directories that the kernel may ask for.
    pub known: u64,
    /// Memory of the tables in this process.
    pub tables: Bytes,
    /// Memory of the ledger.
    pub ledger: Bytes,
    /// Their open backing descriptors, at most.
    pub descriptors: u64,
}

/// The kernel memory of a descriptor: an open file, its name, and an inode of ext4 (filp, dentry, ext4_inode_cache in
/// `/proc/slabinfo`).
pub const DESCRIPTOR: Bytes = Bytes(2048);

impl Footprint {
    /// The sum.
    pub fn total(&self) -> Bytes {
        Bytes(self.tables.0 + self.ledger.0 + self.descriptors * DESCRIPTOR.0)
    }
}

/// The ledger, with a short `Debug`.
struct LedgerRef(Arc<dyn Ledger>);

impl std::fmt::Debug for LedgerRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ledger")
    }
}

impl Nodes {
    /// The nodes of this directory; any descriptor of it will do.
    ///
    /// # Errors
    /// Those of statx(2).
    pub fn new(root: OwnedFd, ledger: Arc<dyn Ledger>) -> io::Result<Self> {
        let statx = at::stat(&root)?;
        let is_overlay = fstatfs(&root).is_ok_and(|fs| fs.f_type as u32 == magic::OVERLAYFS);
        let submounts = Submounts::new(at::mount_of(&root, &statx)).over_overlay(is_overlay);
        let node = Node::new(ROOT, inode(&statx, is_overlay), 0);
        let device = node.inode.dev;
        node.descriptors().path = Some(Arc::new(root));
        let table = Table::new(Arc::new(node), Arc::clone(&ledger));
        let (paths, forgotten) = (Paths::within_limits(usize::MAX), Forgotten::default());
        let (table, any_elsewhere, left) = (RwLock::new(table), AtomicBool::new(false), Mutex::default());
        let ledger = LedgerRef(ledger);
        Ok(Self { table, paths, forgotten, submounts, device, any_elsewhere, left, ledger })
    }

    /// With descriptors of at most `most` nodes.
    pub fn with_paths(mut self, most: usize) -> Self {
        self.paths = Paths::within_limits(most);
        self
    }

    /// Keeps descriptors of up to `most` nodes after the kernel has forgotten them, within the limit of open descriptors.
    pub fn remembering(mut self, most: usize) -> Self {
        let mount = self.root().and_then(|root| mount_of(&root));
        self.forgotten = Forgotten::new(most.min(self.paths.most() / 2), mount);
        self
    }

    /// From now on served by the mount with this number. Without it the flags of the directory's own mount count.
    pub fn served_by(&self, mount: u64) {
        self.submounts.served_by(mount);
    }

    /// The inode in a result of statx(2).
    pub fn inode(&self, statx: &Statx) -> Inode {
        inode(statx, self.submounts.births_change(at::mount(statx)))
    }

    /// Checks that a found file may be served, by its mount.
    ///
    /// # Errors
    /// EXDEV if that is stricter than the serving mount, or shows a directory that is served at another place.
    pub fn may_serve(&self, found: &Statx) -> io::Result<()> {
        self.may_enter(at::mount(found), is(found, FileType::Directory))
    }

    /// On a kernel that does not report the mount of a name, nothing is refused here. The check is repeated on the opened
    /// descriptor, so such a file is listed and cannot be opened.
    fn may_enter(&self, mount: Option<u64>, is_directory: bool) -> io::Result<()> {
        let is_open = |mount| self.submounts.are_open_to(mount, is_directory, || self.place());
        if mount.is_none_or(is_open) { Ok(()) } else { Err(Errno::XDEV.into()) }
    }

    /// The mounts inside the directory that are not served, as far as they are visible.
    pub fn refused(&self) -> Vec<RefusedMount> {
        let Some((root, dir)) = self.root().zip(self.place()) else { return Vec::new() };
        let is_file = |place: &Path| {
            let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
            statx(&root, place, flags, StatxFlags::TYPE).is_ok_and(|found| !is(&found, FileType::Directory))
        };
        self.submounts.refused(&dir, is_file)
    }

    /// The known names of mount points inside whose mount came or went since the last call, or is served in another way since; true: one
    /// that led to another file system, which went.
    pub fn changed_points(&self) -> Vec<(DirEntry, bool)> {
        let changed = self.place().map_or_else(BTreeMap::new, |dir| self.submounts.changed_points(&dir));
        if changed.is_empty() {
            return Vec::new();
        }
        let names = changed.keys().filter_map(|place| place.file_name()).collect();
        let entries = self.read().entries_named(&names);
        let known = entries.into_iter().filter_map(|(entry, is_elsewhere)| {
            let went = changed.get(&self.place_of(entry.parent)?.join(&*entry.name))?;
            Some((entry, is_elsewhere && *went))
        });
        known.collect()
    }

    /// The names of directories that were found at another place since the last call, and of all below: while the kernel knows them, they
    /// are not served there. It goes through all nodes, if there is one.
    pub fn take_left(&self) -> Vec<DirEntry> {
        let left = std::mem::take(&mut *lock(&self.left));
        if left.is_empty() { Vec::new() } else { self.read().entries_below(&left) }
    }

    /// The path of the backing directory.
    fn place(&self) -> Option<PathBuf> {
        std::fs::read_link(at::link(self.root()?.as_fd())).ok()
    }

    fn root(&self) -> Option<Arc<OwnedFd>> {
        self.read().get(ROOT).and_then(|root| root.descriptors().path.clone())
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over from a worker: its records in order, and the kept descriptors of nodes without a name. Call it before the
    /// first request.
    pub fn restore<'a>(&self, entries: impl IntoIterator<Item = Entry<'a>>, kept: Vec<(u64, OwnedFd)>) {
        // A node's mount shows when it is opened, and that may wait already.
        let devices = self.place().map_or_else(HashSet::new, |dir| self.submounts.devices(&dir));
        let mut table = self.write();
        entries.into_iter().for_each(|e| table.restore(&e));
        table.restored();
        self.any_elsewhere.store(table.mark_elsewhere(&devices), Relaxed);
        for (number, fd) in kept {
            let Some(node) = table.get(number) else { continue };
            // A name may be left, if the worker died between keeping and unlinking.
            if at::stat(&fd).is_ok_and(|s| s.stx_nlink == 0) {
                node.set_gone();
            }
            node.set_kept(true);
            self.put_shared(&node, Arc::new(fd));
        }
    }

    /// The open nodes and their numbers of opens.
    pub fn open(&self) -> Vec<(u64, u64)> {
        self.read().open()
    }

    /// The numbers of all nodes, and their known names, without nodes and directories on other mounts than the directory's own.
    pub fn all(&self) -> (Vec<u64>, Vec<DirEntry>) {
        self.read().all()
    }

    /// The path of a node below the backing directory, by the newest names. `None`: it is not known, or lost.
    pub fn place_of(&self, number: u64) -> Option<PathBuf> {
        let (table, mut names, mut at) = (self.read(), Vec::new(), number);
        while at != ROOT {
            let entry = table.last_name(at).filter(|_| names.len() < DEEPEST)?;
            at = entry.parent;
            names.push(entry.name);
        }
        Some(names.iter().rev().map(|name| &**name).collect())
    }

    /// The number of known nodes, and the memory of the tables.
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
    /// ESTALE if the kernel does not know it.
    pub fn get(&self, number: u64) -> io::Result<Arc<Node>> {
        self.read().get(number).ok_or_else(stale)
    }

    /// The node of this inode, if the kernel knows it.
    pub fn find(&self, inode: &Inode) -> Option<Arc<Node>> {
        self.read().find(inode)
    }

    /// True if the kernel knows this inode by this name.
    pub fn is_known_at(&self, inode: &Inode, parent: u64, name: &OsStr) -> bool {
        let table = self.read();
        table.find(inode).is_some_and(|node| table.is_at(node.number, parent, name))
    }

    /// Counts a lookup by the kernel of a file of this directory.
    ///
    /// # Errors
    /// EXDEV for a directory that the kernel knows at another place, where another mount shows it, or did.
    pub fn learn(&self, statx: &Statx, parent: u64, name: &OsStr) -> io::Result<Arc<Node>> {
        let inode = self.inode(statx);
        self.part_from_removed(&inode);
        self.part_from_replaced(&inode, statx);
        let view = if is(statx, FileType::Directory) { self.submounts.view(at::mount(statx)) } else { None };
        let node = self.learn_in_view(inode, DirEntry::new(parent, name), view)?;
        self.note_mount(&node, at::mount(statx));
        if node.is_elsewhere() && !self.is_elsewhere(parent) {
            self.place_of(parent).into_iter().for_each(|dir| self.submounts.note_point(dir.join(name)));
        }
        if let Some(path) = self.forgotten.take(&node.inode) {
            self.put_shared(&node, path);
        }
        Ok(node)
    }

    fn learn_in_view(&self, inode: Inode, entry: DirEntry, view: Option<View>) -> io::Result<Arc<Node>> {
        let mut table = self.write();
        if view.is_some_and(|view| !table.may_be_at(&inode, &entry, view)) {
            let known = table.find(&inode).filter(|node| node.number != ROOT);
            let mut left = lock(&self.left);
            let has_room = left.len() < MOST_LEFT;
            left.extend(known.filter(|_| has_room).map(|node| node.number));
            return Err(Errno::XDEV.into());
        }
        let node = table.learn(inode, entry);
        view.into_iter().for_each(|view| table.note_view(node.number, view));
        Ok(node)
    }

    /// A snapshot in the place of a removed one has the same device, and its inodes have the same numbers and births. The inode that was
    /// found is another than that of the node: that keeps its number and what is open of it, for its users.
    fn part_from_removed(&self, found: &Inode) {
        if found.dev == self.device {
            return;
        }
        let Some(node) = self.find(found).filter(|node| !node.is_elsewhere()) else { return };
        let held = node.descriptors_at_once().and_then(|held| held.any());
        if held.is_some_and(is_of_removed_subvolume) {
            self.write().part(&node);
        }
    }

    /// The kernel forgot `lookups` lookups. Returns the node that was dropped: this one, or another that was in doubt.
    pub fn forget(&self, number: u64, lookups: u64) -> Option<Arc<Node>> {
        let node = self.write().forget(number, lookups)?;
        self.unkeep(&node);
        let path = node.descriptors().path.take().filter(|_| !node.is_gone() && !node.is_elsewhere());
        path.into_iter().for_each(|path| self.forgotten.put(&node.inode, path));
        Some(node)
    }

    /// Closes the descriptors of forgotten nodes that have no name any more, and unused ones on other file systems. Call it every few
    /// seconds.
    pub fn close_unused(&self) {
        self.forgotten.close_removed();
        self.paths.close_foreign();
    }

    /// True if the node lies on another mount than the directory's own, as far as it was seen. For a node of the directory's own device,
    /// and while there is no such mount, this is no more than a comparison.
    pub fn is_elsewhere(&self, number: u64) -> bool {
        let may_be = is_foreign(number) && self.any_elsewhere.load(Relaxed);
        may_be && self.read().get(number).is_some_and(|node| node.is_elsewhere())
    }

    /// The same for what a name leads to. A mount point is known by its name alone: to ask what is there may already wait.
    pub fn leads_elsewhere(&self, parent: u64, name: &OsStr) -> bool {
        self.is_mount_point(parent, name) || self.is_elsewhere(parent)
    }

    /// True if something is mounted at this name.
    pub fn is_mount_point(&self, parent: u64, name: &OsStr) -> bool {
        self.submounts.is_point(|| self.place_of(parent), name)
    }

    /// A file of the directory's own device hangs only with the directory, by whatever mount it was reached.
    fn note_mount(&self, node: &Node, mount: Option<u64>) {
        let Some(mount) = mount.filter(|_| is_foreign(node.number)) else { return };
        let elsewhere = self.submounts.is_other(mount);
        node.set_elsewhere(elsewhere);
        if elsewhere {
            self.any_elsewhere.store(true, Relaxed);
        }
    }

    /// Adds a name to a node.
    pub fn named(&self, node: &Node, parent: u64, name: &OsStr) {
        self.write().add_name(node.number, DirEntry::new(parent, name));
    }

    /// Removes a name from a node.
    pub fn unnamed(&self, node: &Node, parent: u64, name: &OsStr) {
        self.write().remove_name(node.number, parent, name);
    }

    /// The file that serves this access, and whether it was opened just now. It stays open while the node is.
    ///
    /// # Errors
    /// Those of openat(2); ESTALE.
    pub fn file(&self, node: &Arc<Node>, access: Access) -> io::Result<(Arc<File>, bool)> {
        if let Some(file) = node.descriptors().file(access) {
            return Ok((file, false));
        }
        let path = self.path(node)?;
        node.file(access, || open(&path, access))
    }

    /// Counts an open of the node.
    ///
    /// # Errors
    /// The node has no name, and the supervisor cannot be reached to keep it.
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

    /// Counts a release. `again`: an earlier worker may have counted it, so the count stays.
    pub fn released(&self, node: &Node, access: Access, again: bool) {
        if !again {
            self.note_released(node);
        }
        self.closed(node, access, again);
    }

    /// Records a release for the next worker. Here the node stays open until it is [`Self::closed`].
    pub fn note_released(&self, node: &Node) {
        self.read().note(Entry::Released { node: node.number });
    }

    /// Counts a release that was recorded, and closes what is not needed any more. `again`: the count stays.
    pub fn closed(&self, node: &Node, access: Access, again: bool) {
        if access == Access::Write {
            node.count_writer(false);
        }
        let open = again || node.count_open(false);
        node.close_unused(access);
        if !open {
            self.unkeep(node);
        }
    }

    /// Makes the supervisor keep a descriptor of the node. True if it did not keep one before.
    ///
    /// # Errors
    /// The supervisor cannot be reached.
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

    /// Releases the kept descriptor.
    pub fn unkeep(&self, node: &Node) {
        if node.set_kept(false) {
            self.ledger.0.drop_kept(node.number);
        }
    }
}

/// Where births change, nothing but the number tells inodes apart: a handle changes, too, when a file is copied up. What is open keeps its
/// inode and so the number; of other files the stamp shows that the content is another. Not of a link, which no open compares: the kernel
/// keeps its target as long as its inode. So one that has changed is another inode.
fn inode(statx: &Statx, births_change: bool) -> Inode {
    let stamp = Stamp::of(statx);
    let born_ns = if births_change { 0 } else { stamp.born_ns };
    let is_link = born_ns == 0 && is(statx, FileType::Symlink);
    let born_ns = if is_link { stamp.changed_ns } else { born_ns };
    Inode { dev: at::dev(statx), ino: statx.stx_ino, born_ns }
}

fn is(statx: &Statx, kind: FileType) -> bool {
    FileType::from_raw_mode(statx.stx_mode.into()) == kind
}

fn open_file(node: &Node) -> Option<Arc<File>> {
    let descriptors = node.descriptors();
    descriptors.file(Access::Write).or_else(|| descriptors.file(Access::Read))
}

fn stale() -> io::Error {
    Errno::STALE.into()
}

/// A file for writing is also opened for reading if that is allowed: the store may need the bytes around a write. One that nobody may
/// change but at its end is opened for that.
///
/// # Errors
/// Those of open(2); EWOULDBLOCK if another process has a lease on it.
fn open(path: &OwnedFd, access: Access) -> io::Result<Writer> {
    if access == Access::Read {
        return Ok(Writer {
            file: Arc::new(File::new(at::reopen_at_once(path.as_fd(), OFlags::RDONLY)?)),
            readable: true,
        });
    }
    match open_to_write(path, OFlags::empty()) {
        Err(e) if answers(&e, Errno::PERM) => {
            let (fd, readable) = open_to_write(path, OFlags::APPEND)?;
            Ok(Writer { file: Arc::new(File::appending(fd)), readable })
        }
        other => other.map(|(fd, readable)| Writer { file: Arc::new(File::new(fd)), readable }),
    }
}

/// The second value is true if it can be read, too.
fn open_to_write(path: &OwnedFd, how: OFlags) -> io::Result<(OwnedFd, bool)> {
    match at::reopen_at_once(path.as_fd(), OFlags::RDWR | how) {
        Err(e) if answers(&e, Errno::ACCESS) => {
            Ok((at::reopen_at_once(path.as_fd(), OFlags::WRONLY | how)?, false))
        }
        other => Ok((other?, true)),
    }
}

fn answers(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

#[cfg(test)]
#[path = "nodes_tests.rs"]
mod tests;
