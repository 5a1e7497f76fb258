//! The nodes that a log describes, as the last worker had them. Pure.

use std::collections::HashMap;
use std::ffi::OsString;

use eke_cachefs::node::Entry;

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
    /// With their position in the order of arrival.
    known: HashMap<u64, (u64, Node)>,
    /// Open count of each node. The root may be open without a lookup.
    open: HashMap<u64, u64>,
    next: u64,
}

impl Nodes {
    /// Applies the next entry.
    pub fn apply(&mut self, entry: &Entry<'_>) {
        match *entry {
            Entry::Known { node, parent, name, dev, ino, born_ns, generation } => {
                let name = name.to_owned();
                self.know(Node { node, parent, name, dev, ino, born_ns, generation });
            }
            Entry::Forgotten { node } => {
                self.known.remove(&node);
                self.open.remove(&node);
            }
            Entry::Opened { node } => *self.open.entry(node).or_default() += 1,
            Entry::Released { node } => self.release(node),
        }
    }

    fn know(&mut self, node: Node) {
        self.next += 1;
        let order = self.known.get(&node.node).map_or(self.next, |(order, _)| *order);
        self.known.insert(node.node, (order, node));
    }

    fn release(&mut self, node: u64) {
        let left = self.open.get(&node).map_or(0, |open| open.saturating_sub(1));
        if left == 0 {
            self.open.remove(&node);
        } else {
            self.open.insert(node, left);
        }
    }

    /// The nodes in the order of arrival.
    pub fn known(&self) -> Vec<&Node> {
        let mut nodes: Vec<_> = self.known.values().collect();
        nodes.sort_unstable_by_key(|(order, _)| *order);
        nodes.into_iter().map(|(_, node)| node).collect()
    }

    /// How often a node is open.
    pub fn opens(&self, node: u64) -> u64 {
        self.open.get(&node).copied().unwrap_or(0)
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
        let mut open: Vec<_> = self.open.iter().map(|(&node, &times)| (node, times)).collect();
        open.sort_unstable();
        let opened =
            open.into_iter().flat_map(|(node, times)| (0..times).map(move |_| Entry::Opened { node }));
        known.chain(opened)
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{OwnedEntry, tests::any_entry};
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
