//! The numbers of nodes, where they are, and how often the kernel holds them. No descriptors here.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use eke_model::units::Bytes;

use super::identity::Inode;
use super::{Entry, Ledger, Node};
use crate::footprint::{allocated, map};

/// The root's number (`FUSE_ROOT_ID`).
pub const ROOT: u64 = 1;
/// Numbers that are no inode's number below.
const FOREIGN: u64 = 1 << 63;
/// The names that are known of a file with many links; the oldest are given up.
const MOST_PLACES: usize = 16;
/// Nodes of an earlier worker that seem forgotten are kept until so many more do, in case they are not.
const MOST_DOUBTFUL: usize = 1024;

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The directory's number.
    pub parent: u64,
    /// The name there.
    pub name: Box<OsStr>,
}

impl Place {
    /// Of both.
    pub fn new(parent: u64, name: &OsStr) -> Self {
        Self { parent, name: name.into() }
    }

    fn is(&self, parent: u64, name: &OsStr) -> bool {
        self.parent == parent && *self.name == *name
    }
}

#[derive(Debug)]
struct Known {
    node: Arc<Node>,
    /// The one that the ledger has is last.
    places: Vec<Place>,
    /// What the kernel will forget.
    lookups: u64,
    /// An earlier worker answered lookups as well, nobody knows how many.
    unsure: bool,
    /// How many places lie in it.
    pins: u64,
}

impl Known {
    /// Most have one place, and no room for more.
    fn add(&mut self, place: Place) {
        self.places.reserve_exact(1);
        self.places.push(place);
    }
}

/// With its part of the list that it is in, which most are in alone.
fn memory_of(place: &Place) -> usize {
    allocated(size_of::<Place>()) + allocated(place.name.len())
}

/// All nodes.
pub struct Table {
    nodes: HashMap<u64, Known>,
    /// Of inodes whose number is not that of the node.
    numbers: HashMap<(u64, u64), u64>,
    /// What the places take, in bytes.
    places: usize,
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
    /// With the root alone.
    pub fn new(root: Arc<Node>, ledger: Arc<dyn Ledger>) -> Self {
        let inode = root.inode;
        let known = Known { node: root, places: Vec::new(), lookups: 1, unsure: false, pins: 0 };
        Self {
            nodes: HashMap::from([(ROOT, known)]),
            numbers: HashMap::from([((inode.dev, inode.ino), ROOT)]),
            places: 0,
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

    /// The nodes that are open, and how often.
    pub fn open(&self) -> Vec<(u64, u64)> {
        let opens = self.nodes.iter().map(|(number, known)| (*number, known.node.opens()));
        opens.filter(|(_, opens)| *opens > 0).collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// What all of it takes.
    pub fn memory(&self) -> Bytes {
        let maps = map(self.nodes.capacity(), size_of::<(u64, Known)>())
            + map(self.numbers.capacity(), size_of::<((u64, u64), u64)>());
        // Two counts stand before what an Arc points to.
        let nodes = self.nodes.len() * allocated(size_of::<Node>() + 16);
        Bytes((maps + nodes + self.places) as u64)
    }

    /// Is there nothing, not even the root? Never.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The kernel was told of this inode at this place once more.
    pub fn learn(&mut self, inode: Inode, place: Place) -> Arc<Node> {
        let number = self.number(&inode);
        let reused = self.nodes.get(&number).is_some_and(|k| k.node.is_gone() || !k.node.inode.is(&inode));
        if reused {
            self.replace(number, inode);
        }
        let known = self.nodes.entry(number).or_insert_with(|| Known {
            node: Arc::new(Node::new(number, inode, 0)),
            places: Vec::new(),
            lookups: 0,
            unsure: false,
            pins: 0,
        });
        known.lookups += 1;
        known.node.doubtful.store(false, Relaxed);
        let node = Arc::clone(&known.node);
        self.place(number, place);
        node
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

    /// Is its number the node's?
    fn is_plain(&self, inode: &Inode) -> bool {
        inode.dev == self.root_dev && inode.ino > ROOT && inode.ino < FOREIGN
    }

    fn foreign(&mut self) -> u64 {
        self.next_foreign += 1;
        self.next_foreign - 1
    }

    /// Another inode has the number now. The kernel will forget both under it, so the counts go on.
    fn replace(&mut self, number: u64, inode: Inode) {
        let Some(known) = self.nodes.get_mut(&number) else { return };
        let node = Arc::new(Node::new(number, inode, known.node.generation + 1));
        node.take_opens(&known.node);
        known.node = node;
        let places = std::mem::take(&mut known.places);
        self.places -= places.iter().map(memory_of).sum::<usize>();
        places.iter().for_each(|p| self.unpin(p.parent));
    }

    /// The node is at this place too, from now on.
    pub fn place(&mut self, number: u64, place: Place) {
        let Some(known) = self.nodes.get_mut(&number) else { return };
        if number == ROOT || known.places.contains(&place) {
            return;
        }
        let parent = place.parent;
        self.places += memory_of(&place);
        known.add(place);
        let oldest = (known.places.len() > MOST_PLACES).then(|| known.places.remove(0));
        self.places -= oldest.as_ref().map_or(0, memory_of);
        self.record(number);
        if let Some(known) = self.nodes.get_mut(&parent) {
            known.pins += 1;
        }
        if let Some(oldest) = oldest {
            self.unpin(oldest.parent);
        }
    }

    /// It is not there any more.
    pub fn unplace(&mut self, number: u64, parent: u64, name: &OsStr) {
        let Some(known) = self.nodes.get_mut(&number) else { return };
        let Some(at) = known.places.iter().position(|p| p.is(parent, name)) else { return };
        self.places -= memory_of(&known.places.remove(at));
        let was_last = at == known.places.len() && !known.places.is_empty();
        if was_last {
            self.record(number);
        }
        self.unpin(parent);
    }

    /// Where it is, the last that was heard of first.
    pub fn places(&self, number: u64) -> Vec<Place> {
        self.nodes.get(&number).map_or_else(Vec::new, |k| k.places.iter().rev().cloned().collect())
    }

    /// Is this one of the places where it is, as far as is known?
    pub fn is_at(&self, number: u64, parent: u64, name: &OsStr) -> bool {
        self.nodes.get(&number).is_some_and(|known| known.places.iter().any(|p| p.is(parent, name)))
    }

    /// The last that was heard of where it is.
    pub fn last_place(&self, number: u64) -> Option<Place> {
        self.nodes.get(&number)?.places.last().cloned()
    }

    fn record(&self, number: u64) {
        let Some(known) = self.nodes.get(&number) else { return };
        let Some(place) = known.places.last() else { return };
        let Inode { dev, ino, born_ns } = known.node.inode;
        let (parent, name, generation) = (place.parent, &*place.name, known.node.generation);
        self.ledger.record(Entry::Known { node: number, parent, name, dev, ino, born_ns, generation });
    }

    /// The kernel forgot so many lookups (`FUSE_FORGET`). Returns the node if it is known no more.
    pub fn forget(&mut self, number: u64, lookups: u64) -> Option<Arc<Node>> {
        if number == ROOT {
            return None;
        }
        let known = self.nodes.get_mut(&number)?;
        let all = lookups > known.lookups;
        known.lookups = known.lookups.saturating_sub(lookups);
        if !known.unsure {
            return self.drop_unused(number);
        }
        if all && !known.node.doubtful.swap(true, Relaxed) {
            self.doubtful.push_back(number);
        }
        self.drop_doubtful()
    }

    /// The kernel forgets an inode with all its lookups at once, so more than this worker answered means all. But a lookup
    /// whose answer was of no use is forgotten alone, so nothing is sure.
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
        self.places -= known.places.iter().map(memory_of).sum::<usize>();
        if self.nodes.len() < self.nodes.capacity() / 8 {
            self.nodes.shrink_to(self.nodes.len() * 2);
        }
        self.ledger.record(Entry::Forgotten { node: number });
        known.places.iter().for_each(|p| self.unpin(p.parent));
        Some(known.node)
    }

    /// A chain of directories that only this held goes at once, however long it is.
    fn unpin(&mut self, parent: u64) {
        let mut at = vec![parent];
        while let Some(number) = at.pop() {
            let Some(known) = self.nodes.get_mut(&number) else { continue };
            known.pins = known.pins.saturating_sub(1);
            if number == ROOT || known.pins > 0 || known.lookups > 0 || known.unsure {
                continue;
            }
            let places = std::mem::take(&mut known.places);
            self.places -= places.iter().map(memory_of).sum::<usize>();
            at.extend(places.iter().map(|p| p.parent));
            self.drop_unused(number);
        }
    }

    /// What an earlier worker noted. To be called before anything else.
    pub fn restore(&mut self, entry: &Entry<'_>) {
        match *entry {
            Entry::Known { node, parent, name, dev, ino, born_ns, generation } => {
                self.restore_node(node, Inode { dev, ino, born_ns }, generation);
                self.restore_place(node, Place::new(parent, name));
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
            let pins = self.nodes.get(&number).map_or(0, |k| k.pins);
            let known = Known { node, places: Vec::new(), lookups: 0, unsure: true, pins };
            let before = self.nodes.insert(number, known);
            self.places -= before.iter().flat_map(|k| &k.places).map(memory_of).sum::<usize>();
        }
        if !self.is_plain(&inode) || number != inode.ino {
            self.numbers.insert((inode.dev, inode.ino), number);
        }
        self.next_foreign = self.next_foreign.max(number.wrapping_add(1));
    }

    /// As [`Self::place`], but the ledger has it, and the parent may come later.
    fn restore_place(&mut self, number: u64, place: Place) {
        if let Some(known) =
            self.nodes.get_mut(&number).filter(|k| number != ROOT && !k.places.contains(&place))
        {
            self.places += memory_of(&place);
            known.add(place);
        }
    }

    fn restore_open(&mut self, number: u64, opened: bool) {
        if let Some(known) = self.nodes.get(&number) {
            known.node.count_open(opened);
        }
    }

    /// Counts what lies in what, when all entries came.
    pub fn restored(&mut self) {
        self.nodes.values_mut().for_each(|k| k.pins = 0);
        let parents: Vec<_> = self.nodes.values().flat_map(|k| k.places.iter().map(|p| p.parent)).collect();
        for parent in parents {
            if let Some(known) = self.nodes.get_mut(&parent) {
                known.pins += 1;
            }
        }
    }

    /// Notes an open or a release.
    pub fn note(&self, entry: Entry<'_>) {
        self.ledger.record(entry);
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
