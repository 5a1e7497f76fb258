//! Doubly linked queues of slot numbers. All nodes are in one vector, so nothing is allocated when a block comes or goes.

use std::collections::TryReserveError;

use eke_model::units::Bytes;

use super::Slot;

const NONE: u32 = u32::MAX;

/// A slot's links and weight.
#[derive(Debug, Clone, Copy)]
struct Node {
    newer: u32,
    older: u32,
    weight: u32,
    /// For the policy: half of the key's hash.
    tag: u32,
    queue: u8,
    /// For the policy: how often requested.
    marks: u8,
}

const EMPTY: Node = Node { newer: NONE, older: NONE, weight: 0, tag: 0, queue: 0, marks: 0 };

#[derive(Debug, Clone, Copy)]
struct Ends {
    newest: u32,
    oldest: u32,
    weight: u64,
}

/// `N` queues; a slot is in at most one.
#[derive(Debug)]
pub(super) struct Queues<const N: usize> {
    nodes: Vec<Node>,
    ends: [Ends; N],
}

impl<const N: usize> Default for Queues<N> {
    fn default() -> Self {
        Self { nodes: Vec::new(), ends: [Ends { newest: NONE, oldest: NONE, weight: 0 }; N] }
    }
}

impl<const N: usize> Queues<N> {
    pub fn reserve(&mut self, slots: usize) -> Result<(), TryReserveError> {
        let more = slots.saturating_sub(self.nodes.len());
        self.nodes.try_reserve_exact(more)?;
        self.nodes.resize(self.nodes.len() + more, EMPTY);
        Ok(())
    }

    pub fn shrink(&mut self, slots: usize) {
        self.nodes.truncate(slots);
        self.nodes.shrink_to_fit();
    }

    pub fn held(&self) -> Bytes {
        Bytes((self.nodes.capacity() * size_of::<Node>()) as u64)
    }

    /// Adds a slot as the newest of `queue`, without marks.
    pub fn push(&mut self, queue: u8, slot: Slot, tag: u32, weight: u32) {
        let ends = &mut self.ends[usize::from(queue)];
        let older = std::mem::replace(&mut ends.newest, slot.0);
        ends.weight += u64::from(weight);
        if older == NONE {
            ends.oldest = slot.0;
        } else {
            self.nodes[older as usize].newer = slot.0;
        }
        self.nodes[slot.index()] = Node { newer: NONE, older, weight, tag, queue, marks: 0 };
    }

    pub fn unlink(&mut self, slot: Slot) {
        let node = self.nodes[slot.index()];
        let ends = &mut self.ends[usize::from(node.queue)];
        ends.weight -= u64::from(node.weight);
        if node.newer == NONE {
            ends.newest = node.older;
        } else {
            self.nodes[node.newer as usize].older = node.older;
        }
        if node.older == NONE {
            self.ends[usize::from(node.queue)].oldest = node.newer;
        } else {
            self.nodes[node.older as usize].newer = node.newer;
        }
    }

    /// Moves a slot to the newest end of `queue` and sets its marks.
    pub fn renew(&mut self, queue: u8, slot: Slot, marks: u8) {
        let Node { tag, weight, .. } = self.nodes[slot.index()];
        self.unlink(slot);
        self.push(queue, slot, tag, weight);
        self.nodes[slot.index()].marks = marks;
    }

    pub fn reweigh(&mut self, slot: Slot, weight: u32) {
        let node = &mut self.nodes[slot.index()];
        let total = &mut self.ends[usize::from(node.queue)].weight;
        *total = *total - u64::from(node.weight) + u64::from(weight);
        node.weight = weight;
    }

    /// Moves the node of `from` to `to`, at the same position in the queue.
    pub fn renumber(&mut self, from: Slot, to: Slot) {
        let node = self.nodes[from.index()];
        let ends = &mut self.ends[usize::from(node.queue)];
        match node.newer {
            NONE => ends.newest = to.0,
            newer => self.nodes[newer as usize].older = to.0,
        }
        match node.older {
            NONE => ends.oldest = to.0,
            older => self.nodes[older as usize].newer = to.0,
        }
        self.nodes[to.index()] = node;
    }

    pub fn oldest(&self, queue: u8) -> Option<Slot> {
        Some(self.ends[usize::from(queue)].oldest).filter(|&s| s != NONE).map(Slot)
    }

    /// The bytes in one queue.
    pub fn weight(&self, queue: u8) -> u64 {
        self.ends[usize::from(queue)].weight
    }

    pub fn weight_of(&self, slot: Slot) -> u32 {
        self.nodes[slot.index()].weight
    }

    pub fn queue_of(&self, slot: Slot) -> u8 {
        self.nodes[slot.index()].queue
    }

    pub fn tag_of(&self, slot: Slot) -> u32 {
        self.nodes[slot.index()].tag
    }

    pub fn marks(&mut self, slot: Slot) -> &mut u8 {
        &mut self.nodes[slot.index()].marks
    }

    pub fn marks_of(&self, slot: Slot) -> u8 {
        self.nodes[slot.index()].marks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(queues: &Queues<1>) -> Vec<u32> {
        let newer = |slot: &u32| Some(queues.nodes[*slot as usize].newer).filter(|&slot| slot != NONE);
        std::iter::successors(queues.oldest(0).map(|slot| slot.0), newer).collect()
    }

    #[test]
    fn a_queue_keeps_order_and_weight_through_all_its_moves() {
        let mut queues = Queues::<1>::default();
        queues.reserve(4).unwrap();
        for slot in 0..4 {
            queues.push(0, Slot(slot), slot, 10 + slot);
        }
        assert_eq!((order(&queues), queues.weight(0)), (vec![0, 1, 2, 3], 46));
        queues.unlink(Slot(0));
        queues.renew(0, Slot(2), 1);
        queues.reweigh(Slot(3), 1);
        assert_eq!((order(&queues), queues.weight(0)), (vec![1, 3, 2], 24));
        queues.renumber(Slot(3), Slot(0));
        assert_eq!((order(&queues), queues.weight(0)), (vec![1, 0, 2], 24));
        queues.renumber(Slot(1), Slot(3));
        assert_eq!((order(&queues), queues.weight(0)), (vec![3, 0, 2], 24));
        assert_eq!((queues.marks_of(Slot(2)), queues.tag_of(Slot(2)), queues.weight_of(Slot(2))), (1, 2, 12));
        for slot in [0, 2, 3] {
            queues.unlink(Slot(slot));
        }
        assert_eq!((order(&queues), queues.weight(0)), (vec![], 0));
    }
}
