//! The nodes that a log describes, as the last worker had them. Pure.

use std::collections::HashMap;
use std::ffi::OsString;

use eke_cachefs::node::Entry;

use super::record::{ONE_LEN, known_len};

/// A node in the ledger. The fields are those of [`Entry::Known`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its number.
    pub node: u64,
    /// The parent's number.
    pub parent: u64,
    /// Its name in the parent.
    pub name: OsString,
    /// `st_dev` of the backing file.
    pub dev: u64,
    /// `st_ino` of the backing file.
    pub ino: u64,
    /// The backing file's birth time in nanoseconds since 1970, 0 if unknown.
    pub born_ns: i128,
    /// FUSE's generation of the node's number.
    pub generation: u64,
}

/// All nodes of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Nodes {
    /// With their position in the order of their latest records.
    known: HashMap<u64, (u64, Node)>,
    open: Opens,
    next: u64,
}

/// The open count of each node. The root may be open without a lookup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Opens(HashMap<u64, u64>);

impl Opens {
    /// Applies the next entry.
    pub fn apply(&mut self, entry: &Entry<'_>) {
        match *entry {
            Entry::Known { .. } => {}
            Entry::Forgotten { node } => drop(self.0.remove(&node)),
            Entry::Opened { node } => *self.0.entry(node).or_default() += 1,
            Entry::Released { node } => self.release(node),
        }
    }

    fn release(&mut self, node: u64) {
        let left = self.of(node).saturating_sub(1);
        if left == 0 {
            self.0.remove(&node);
        } else {
            self.0.insert(node, left);
        }
    }

    fn of(&self, node: u64) -> u64 {
        self.0.get(&node).copied().unwrap_or(0)
    }

    /// The number of opens in all.
    pub fn all(&self) -> u64 {
        self.0.values().sum()
    }

    /// An entry for each open.
    pub fn iter(&self) -> impl Iterator<Item = Entry<'_>> {
        let mut open: Vec<_> = self.0.iter().map(|(&node, &times)| (node, times)).collect();
        open.sort_unstable();
        open.into_iter().flat_map(|(node, times)| (0..times).map(move |_| Entry::Opened { node }))
    }
}

impl Nodes {
    /// Applies the next entry.
    pub fn apply(&mut self, entry: &Entry<'_>) {
        self.open.apply(entry);
        match *entry {
            Entry::Known { node, parent, name, dev, ino, born_ns, generation } => {
                let name = name.to_owned();
                self.next += 1;
                let known = Node { node, parent, name, dev, ino, born_ns, generation };
                self.known.insert(node, (self.next, known));
            }
            Entry::Forgotten { node } => drop(self.known.remove(&node)),
            Entry::Opened { .. } | Entry::Released { .. } => {}
        }
    }

    /// The nodes in the order of their latest records.
    pub fn known(&self) -> Vec<&Node> {
        let mut nodes: Vec<_> = self.known.values().collect();
        nodes.sort_unstable_by_key(|(order, _)| *order);
        nodes.into_iter().map(|(_, node)| node).collect()
    }

    /// How often a node is open.
    pub fn opens(&self, node: u64) -> u64 {
        self.open.of(node)
    }

    /// The bytes of the shortest log of these nodes.
    pub(super) fn shortest(&self) -> u64 {
        let known: usize = self.known.values().map(|(_, node)| known_len(&node.name)).sum();
        known as u64 + self.open.all() * ONE_LEN as u64
    }

    /// The shortest log of these nodes.
    pub fn iter(&self) -> impl Iterator<Item = Entry<'_>> {
        let known = self.known().into_iter().map(|n| Entry::Known {
            node: n.node,
            parent: n.parent,
            name: &n.name,
            dev: n.dev,
            ino: n.ino,
            born_ns: n.born_ns,
            generation: n.generation,
        });
        known.chain(self.open.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{OwnedEntry, encode, tests::any_entry};
    use super::*;
    use proptest::prelude::*;

    fn of(entries: &[OwnedEntry]) -> Nodes {
        let mut nodes = Nodes::default();
        entries.iter().for_each(|e| nodes.apply(&e.entry()));
        nodes
    }

    proptest! {
        #[test]
        fn the_shortest_log_makes_the_same_nodes(entries in proptest::collection::vec(any_entry(), 0..60)) {
            let (nodes, mut again) = (of(&entries), Nodes::default());
            nodes.iter().for_each(|entry| again.apply(&entry));
            let mut record = Vec::new();
            let len = nodes.iter().map(|entry| {
                encode(&entry, 0, &mut record);
                record.len() as u64
            });
            prop_assert_eq!(len.sum::<u64>(), nodes.shortest());
            prop_assert_eq!(nodes.known(), again.known());
            prop_assert_eq!(nodes.open, again.open);
        }
    }

    #[test]
    fn a_release_too_many_or_an_open_of_the_root_is_no_fault() {
        let (opened, released) = (OwnedEntry::Opened { node: 1 }, |node| OwnedEntry::Released { node });
        assert_eq!(of(&[opened.clone(), opened, released(2)]).opens(1), 2);
        assert_eq!(of(&[released(1)]), Nodes::default());
    }
}
