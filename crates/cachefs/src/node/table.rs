//! The numbers and names of nodes, and the kernel's lookups of them. It has no descriptors.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use eke_model::units::Bytes;
use rustix::fs::{major, minor};

use super::identity::Inode;
use super::views::View;
use super::{Entry, Ledger, Node};
use crate::footprint::{allocated, map};

/// The root's number (`FUSE_ROOT_ID`).
pub const ROOT: u64 = 1;
/// From here on, numbers are not inode numbers.
const FOREIGN: u64 = 1 << 63;

/// True for the number of a file on another device than the root, which is not its inode's number.
pub fn is_foreign(number: u64) -> bool {
    number >= FOREIGN
}

/// The most names that are kept of a file with many links; the oldest are dropped.
const MOST_NAMES: usize = 16;
/// Nodes of an earlier worker that seem forgotten are kept until this many more are, in case they are not.
const MOST_DOUBTFUL: usize = 1024;

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// The directory's number.
    pub parent: u64,
    /// The name there.
    pub name: Box<OsStr>,
}

impl DirEntry {
    /// The entry `name` in directory `parent`.
    pub fn new(parent: u64, name: &OsStr) -> Self {
        Self { parent, name: name.into() }
    }

    fn is(&self, parent: u64, name: &OsStr) -> bool {
        self.parent == parent && *self.name == *name
    }
}

#[derive(Debug)]
struct NodeRecord {
    node: Arc<Node>,
    /// The last one is the ledger's.
    names: Vec<DirEntry>,
    /// The lookups that the kernel will forget.
    lookups: u64,
    /// An earlier worker answered lookups too; their number is unknown.
    unsure: bool,
    /// The number of known names in it.
    pins: u64,
    /// Where a directory was found last; `None`: not by this worker.
    view: Option<View>,
}

impl NodeRecord {
    /// Most nodes have one name, so no extra room is reserved.
    fn add(&mut self, entry: DirEntry) {
        self.names.reserve_exact(1);
        self.names.push(entry);
    }
}

/// The memory of a name, with its part of the node's list, which usually has one entry.
fn memory_of(entry: &DirEntry) -> usize {
    allocated(size_of::<DirEntry>()) + allocated(entry.name.len())
}

/// All nodes.
pub struct Table {
    nodes: HashMap<u64, NodeRecord>,
    /// The numbers of nodes that are not their inode's number.
    numbers: HashMap<(u64, u64), u64>,
    /// The memory of all names, in bytes.
    names_bytes: usize,
    root_dev: u64,
    next_foreign: u64,
    doubtful: VecDeque<u64>,
    ledger: Arc<dyn Ledger>,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}

impl Table {
    /// With only the root.
    pub fn new(root: Arc<Node>, ledger: Arc<dyn Ledger>) -> Self {
        let inode = root.inode;
        let known =
            NodeRecord { node: root, names: Vec::new(), lookups: 1, unsure: false, pins: 0, view: None };
        Self {
            nodes: HashMap::from([(ROOT, known)]),
            numbers: HashMap::from([((inode.dev, inode.ino), ROOT)]),
            names_bytes: 0,
            root_dev: inode.dev,
            next_foreign: FOREIGN,
            doubtful: VecDeque::new(),
            ledger,
        }
    }

    /// The node with this number.
    pub fn get(&self, number: u64) -> Option<Arc<Node>> {
        let node = &self.nodes.get(&number)?.node;
        node.doubtful.store(false, Relaxed);
        Some(Arc::clone(node))
    }

    /// The node of this inode, if it is known.
    pub fn find(&self, inode: &Inode) -> Option<Arc<Node>> {
        let number = self.numbers.get(&(inode.dev, inode.ino)).copied().unwrap_or(inode.ino);
        let node = &self.nodes.get(&number)?.node;
        node.inode.is(inode).then(|| Arc::clone(node))
    }

    /// The open nodes and their numbers of opens.
    pub fn open(&self) -> Vec<(u64, u64)> {
        let opens = self.nodes.iter().map(|(number, known)| (*number, known.node.opens()));
        opens.filter(|(_, opens)| *opens > 0).collect()
    }

    /// All nodes, and their known names, without nodes and directories that lie elsewhere. A mount point's own name is among them.
    pub fn all(&self) -> (Vec<u64>, Vec<DirEntry>) {
        let names = self.nodes.values().flat_map(|known| known.names.iter());
        let names = names.filter(|name| self.is_here(name.parent)).cloned();
        (self.nodes.keys().copied().filter(|number| self.is_here(*number)).collect(), names.collect())
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The memory of the table.
    pub fn memory(&self) -> Bytes {
        let maps = map(self.nodes.capacity(), size_of::<(u64, NodeRecord)>())
            + map(self.numbers.capacity(), size_of::<((u64, u64), u64)>());
        // An Arc's target has two counts in front of it.
        let nodes = self.nodes.len() * allocated(size_of::<Node>() + 16);
        Bytes((maps + nodes + self.names_bytes) as u64)
    }

    /// True if there is not even the root, which never happens.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// False for a directory that the kernel knows at another place, as another mount shows it there: it would move that, and what works
    /// in it, to this one (`views`).
    pub(super) fn may_be_at(&self, inode: &Inode, entry: &DirEntry, view: View) -> bool {
        let node = self.find(inode).filter(|node| !node.is_gone());
        let Some((node, known)) = node.and_then(|node| Some((node.number, self.nodes.get(&node.number)?)))
        else {
            return true;
        };
        if node == ROOT {
            return false;
        }
        let is_forgotten = known.lookups == 0 && !known.unsure;
        // No other view shows what the directory's own mount has.
        let is_same = known.view.map_or(view == View::HOME, |known| known == view);
        is_forgotten || is_same || known.names.contains(entry)
    }

    /// Notes what shows a directory.
    pub(super) fn note_view(&mut self, number: u64, view: View) {
        if let Some(known) = self.nodes.get_mut(&number) {
            known.view = Some(view);
        }
    }

    /// The known entries with one of these names, but for those in directories that lie elsewhere; true: the node itself does.
    pub(super) fn entries_named(&self, names: &HashSet<&OsStr>) -> Vec<(DirEntry, bool)> {
        let entries = self.nodes.values().flat_map(|known| known.names.iter().map(move |name| (known, name)));
        let named = entries.filter(|(_, entry)| names.contains(&*entry.name) && self.is_here(entry.parent));
        named.map(|(known, entry)| (entry.clone(), known.node.is_elsewhere())).collect()
    }

    /// The known entries of these directories, and of all below.
    pub(super) fn entries_below(&self, tops: &HashSet<u64>) -> Vec<DirEntry> {
        let mut is_below: HashMap<u64, bool> = tops.iter().map(|top| (*top, true)).collect();
        let (mut way, mut found) = (Vec::new(), Vec::new());
        for (number, known) in &self.nodes {
            let mut at = *number;
            let below = loop {
                // The names of moved directories may form a ring.
                let seen = is_below.get(&at).copied().or((way.len() > self.nodes.len()).then_some(false));
                if let Some(below) = seen {
                    break below;
                }
                way.push(at);
                match self.nodes.get(&at).and_then(|known| known.names.last()) {
                    Some(name) => at = name.parent,
                    None => break false,
                }
            };
            is_below.extend(way.drain(..).map(|number| (number, below)));
            found.extend(known.names.iter().filter(|_| below).cloned());
        }
        found
    }

    /// False for a node that lies elsewhere.
    fn is_here(&self, number: u64) -> bool {
        self.nodes.get(&number).is_none_or(|known| !known.node.is_elsewhere())
    }

    /// Counts a lookup of this inode by this name.
    pub fn learn(&mut self, inode: Inode, entry: DirEntry) -> Arc<Node> {
        let number = self.number(&inode);
        let reused = self.nodes.get(&number).is_some_and(|k| k.node.is_gone() || !k.node.inode.is(&inode));
        if reused {
            self.replace(number, inode);
        }
        let known = self.nodes.entry(number).or_insert_with(|| NodeRecord {
            node: Arc::new(Node::new(number, inode, 0)),
            names: Vec::new(),
            lookups: 0,
            unsure: false,
            pins: 0,
            view: None,
        });
        known.lookups += 1;
        known.node.doubtful.store(false, Relaxed);
        let node = Arc::clone(&known.node);
        self.add_name(number, entry);
        node
    }

    /// Another inode has the node's device and number now. That one gets a node of its own, by the next lookup.
    pub fn part(&mut self, node: &Node) {
        let key = (node.inode.dev, node.inode.ino);
        if self.numbers.get(&key) == Some(&node.number) {
            self.numbers.remove(&key);
        }
    }

    fn number(&mut self, inode: &Inode) -> u64 {
        let key = (inode.dev, inode.ino);
        if let Some(&number) = self.numbers.get(&key) {
            return number;
        }
        if self.is_plain(inode) {
            return inode.ino;
        }
        let number = self.foreign();
        self.numbers.insert(key, number);
        number
    }

    /// True if the inode's number is also the node's.
    fn is_plain(&self, inode: &Inode) -> bool {
        inode.dev == self.root_dev && inode.ino > ROOT && inode.ino < FOREIGN
    }

    fn foreign(&mut self) -> u64 {
        self.next_foreign += 1;
        self.next_foreign - 1
    }

    /// Another inode has the number now. The kernel will forget the lookups of both under it, so the counts continue.
    fn replace(&mut self, number: u64, inode: Inode) {
        let Some(known) = self.nodes.get_mut(&number) else { return };
        let node = Arc::new(Node::new(number, inode, known.node.generation + 1));
        node.take_opens(&known.node);
        (known.node, known.view) = (node, None);
        let names = std::mem::take(&mut known.names);
        self.names_bytes -= names.iter().map(memory_of).sum::<usize>();
        names.iter().for_each(|p| self.unpin(p.parent));
    }

    /// Adds a name to the node.
    pub fn add_name(&mut self, number: u64, entry: DirEntry) {
        let Some(known) = self.nodes.get_mut(&number) else { return };
        if number == ROOT || known.names.contains(&entry) {
            return;
        }
        let parent = entry.parent;
        self.names_bytes += memory_of(&entry);
        known.add(entry);
        let oldest = (known.names.len() > MOST_NAMES).then(|| known.names.remove(0));
        self.names_bytes -= oldest.as_ref().map_or(0, memory_of);
        self.record(number);
        if let Some(known) = self.nodes.get_mut(&parent) {
            known.pins += 1;
        }
        if let Some(oldest) = oldest {
            self.unpin(oldest.parent);
        }
    }

    /// Removes a name from the node.
    pub fn remove_name(&mut self, number: u64, parent: u64, name: &OsStr) {
        let Some(known) = self.nodes.get_mut(&number) else { return };
        let Some(at) = known.names.iter().position(|p| p.is(parent, name)) else { return };
        self.names_bytes -= memory_of(&known.names.remove(at));
        let was_last = at == known.names.len() && !known.names.is_empty();
        if was_last {
            self.record(number);
        }
        self.unpin(parent);
    }

    /// The node's names, the newest first.
    pub fn names(&self, number: u64) -> Vec<DirEntry> {
        self.nodes.get(&number).map_or_else(Vec::new, |k| k.names.iter().rev().cloned().collect())
    }

    /// True if this is one of the node's known names.
    pub fn is_at(&self, number: u64, parent: u64, name: &OsStr) -> bool {
        self.nodes.get(&number).is_some_and(|known| known.names.iter().any(|p| p.is(parent, name)))
    }

    /// The node's newest name.
    pub fn last_name(&self, number: u64) -> Option<DirEntry> {
        self.nodes.get(&number)?.names.last().cloned()
    }

    fn record(&self, number: u64) {
        let Some(known) = self.nodes.get(&number) else { return };
        let Some(entry) = known.names.last() else { return };
        let Inode { dev, ino, born_ns } = known.node.inode;
        let (parent, name, generation) = (entry.parent, &*entry.name, known.node.generation);
        self.ledger.record(Entry::Known { node: number, parent, name, dev, ino, born_ns, generation });
    }

    /// The kernel forgot `lookups` lookups (`FUSE_FORGET`). Returns the node that was dropped: this one, or another that was in doubt.
    pub fn forget(&mut self, number: u64, lookups: u64) -> Option<Arc<Node>> {
        if number == ROOT {
            return None;
        }
        let known = self.nodes.get_mut(&number)?;
        let all = lookups > known.lookups;
        known.lookups = known.lookups.saturating_sub(lookups);
        // Without a name it is not looked up again, so an unknown lookup cannot come back; its disk space waits for this.
        let is_over = known.lookups == 0 && known.node.is_gone() && !known.node.is_open();
        known.unsure &= !is_over;
        if !known.unsure {
            return self.drop_unused(number);
        }
        if all && !known.node.doubtful.swap(true, Relaxed) {
            self.doubtful.push_back(number);
        }
        self.drop_doubtful()
    }

    /// The kernel forgets all lookups of an inode at once, so a number above this worker's answers means all. But a lookup
    /// whose answer was useless is forgotten alone, so this is not certain.
    fn drop_doubtful(&mut self) -> Option<Arc<Node>> {
        if self.doubtful.len() <= MOST_DOUBTFUL {
            return None;
        }
        let number = self.doubtful.pop_front()?;
        let known = self.nodes.get_mut(&number)?;
        if !known.node.doubtful.swap(false, Relaxed) {
            return None;
        }
        known.unsure = false;
        self.drop_unused(number)
    }

    fn drop_unused(&mut self, number: u64) -> Option<Arc<Node>> {
        let known = self.nodes.get(&number)?;
        if number == ROOT || known.lookups > 0 || known.unsure || known.pins > 0 {
            return None;
        }
        let known = self.nodes.remove(&number)?;
        let key = (known.node.inode.dev, known.node.inode.ino);
        if self.numbers.get(&key) == Some(&number) {
            self.numbers.remove(&key);
        }
        self.names_bytes -= known.names.iter().map(memory_of).sum::<usize>();
        if self.nodes.len() < self.nodes.capacity() / 8 {
            self.nodes.shrink_to(self.nodes.len() * 2);
        }
        self.ledger.record(Entry::Forgotten { node: number });
        known.names.iter().for_each(|p| self.unpin(p.parent));
        Some(known.node)
    }

    /// Drops a chain of directories that only this node kept, however long it is.
    fn unpin(&mut self, parent: u64) {
        let mut at = vec![parent];
        while let Some(number) = at.pop() {
            let Some(known) = self.nodes.get_mut(&number) else { continue };
            known.pins = known.pins.saturating_sub(1);
            if number == ROOT || known.pins > 0 || known.lookups > 0 || known.unsure {
                continue;
            }
            let names = std::mem::take(&mut known.names);
            self.names_bytes -= names.iter().map(memory_of).sum::<usize>();
            at.extend(names.iter().map(|p| p.parent));
            self.drop_unused(number);
        }
    }

    /// Restores a record of an earlier worker. Call it before anything else.
    pub fn restore(&mut self, entry: &Entry<'_>) {
        match *entry {
            Entry::Known { node, parent, name, dev, ino, born_ns, generation } => {
                self.restore_node(node, Inode { dev, ino, born_ns }, generation);
                self.restore_name(node, DirEntry::new(parent, name));
            }
            Entry::Forgotten { node } => {
                if let Some(known) = self.nodes.get_mut(&node) {
                    known.unsure = false;
                    self.drop_unused(node);
                }
            }
            Entry::Opened { node } => self.restore_open(node, true),
            Entry::Released { node } => self.restore_open(node, false),
        }
    }

    fn restore_node(&mut self, number: u64, inode: Inode, generation: u64) {
        if number == ROOT {
            return;
        }
        let same = self.nodes.get(&number).is_some_and(|k| k.node.generation == generation);
        if !same {
            let node = Arc::new(Node::new(number, inode, generation));
            // The earlier worker knew; this one asks at the next open.
            node.set_mapped(true);
            let pins = self.nodes.get(&number).map_or(0, |k| k.pins);
            let known = NodeRecord { node, names: Vec::new(), lookups: 0, unsure: true, pins, view: None };
            let before = self.nodes.insert(number, known);
            self.names_bytes -= before.iter().flat_map(|k| &k.names).map(memory_of).sum::<usize>();
        }
        if !self.is_plain(&inode) || number != inode.ino {
            self.numbers.insert((inode.dev, inode.ino), number);
        }
        self.next_foreign = self.next_foreign.max(number.wrapping_add(1));
    }

    /// As [`Self::add_name`], but the ledger already has it, and the parent may come later.
    fn restore_name(&mut self, number: u64, entry: DirEntry) {
        if let Some(known) =
            self.nodes.get_mut(&number).filter(|k| number != ROOT && !k.names.contains(&entry))
        {
            self.names_bytes += memory_of(&entry);
            known.add(entry);
        }
    }

    fn restore_open(&mut self, number: u64, opened: bool) {
        if let Some(known) = self.nodes.get(&number) {
            known.node.inherit_open(opened);
        }
    }

    /// Counts the names in each directory, after all records were restored.
    pub fn restored(&mut self) {
        self.nodes.values_mut().for_each(|k| k.pins = 0);
        let parents: Vec<_> = self.nodes.values().flat_map(|k| k.names.iter().map(|p| p.parent)).collect();
        for parent in parents {
            if let Some(known) = self.nodes.get_mut(&parent) {
                known.pins += 1;
            }
        }
    }

    /// Marks the nodes on these devices, which are as in mountinfo. True if there is one.
    pub fn mark_elsewhere(&self, devices: &HashSet<String>) -> bool {
        let foreign = self.nodes.values().map(|k| &k.node).filter(|node| is_foreign(node.number));
        let device = |node: &Node| format!("{}:{}", major(node.inode.dev), minor(node.inode.dev));
        let elsewhere = foreign.filter(|node| devices.contains(&device(node)));
        elsewhere.inspect(|node| node.set_elsewhere(true)).count() > 0
    }

    /// Records an open or a release.
    pub fn note(&self, entry: Entry<'_>) {
        self.ledger.record(entry);
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
