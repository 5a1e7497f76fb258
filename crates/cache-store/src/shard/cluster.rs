//! Clusters: blocks of one stretch of a file that were admitted one after another. They are requested together, so they stay
//! and leave together. The policy orders clusters, each by its leader's slot.
//!
//! With single blocks, a file that is read as a whole gets holes: the page cache serves some requests, so a second request
//! for a block is chance, and each hole costs the next reader a seek. Blocks admitted alone, by random reads, are clusters
//! of one.

use super::Shard;
use super::slots::{Cluster, NONE, SlotState};
use crate::Key;
use crate::policy::Slot;
use crate::policy::{Entrance, Heat};

/// A block joins a cluster whose last block was admitted at most this many admissions ago: threads compress the blocks of
/// one read out of order, mixed with others.
const FRESH: u32 = 64;

/// The most blocks of a cluster.
pub(crate) const MOST: usize = 64;

impl Shard {
    /// Adds a block that is in the tables to its cluster, or to a new one.
    pub(super) fn join(&mut self, slot: Slot, entrance: Entrance) {
        self.joins = self.joins.wrapping_add(1);
        let at = self.position_in_stretch(slot);
        match self.fresh_leader(slot) {
            Some(leader) => {
                self.slots[slot].leader = leader.0;
                let cluster = &mut self.slots[leader].cluster;
                *cluster = Cluster { asked: cluster.asked.min(at), joined: self.joins };
                self.weigh(leader);
                if entrance == Entrance::Main {
                    self.policy.promote(leader);
                }
            }
            None => {
                self.slots[slot].leader = slot.0;
                self.slots[slot].cluster = Cluster { asked: at, joined: self.joins };
                // By the stretch's hash: next time another block of it may be admitted first.
                let hash = self.stretch(self.slots[slot].key).hash();
                let weight = self.slots[slot].weight();
                match entrance {
                    Entrance::Small => self.policy.admit(slot, hash, weight),
                    Entrance::Main => self.policy.admit_to_stay(slot, hash, weight),
                }
            }
        }
    }

    fn fresh_leader(&self, slot: Slot) -> Option<Slot> {
        let is_fresh = |leader: Slot| self.joins.wrapping_sub(self.slots[leader].cluster.joined) <= FRESH;
        let others = self.in_stretch(self.slots[slot].key).filter(|&other| other != slot);
        others.map(|other| Slot(self.slots[other].leader)).find(|&leader| is_fresh(leader))
    }

    /// A block was requested. One pass over the cluster counts as one request, however many blocks are requested in it.
    pub(super) fn asked(&mut self, slot: Slot) {
        let (at, leader) = (self.position_in_stretch(slot), Slot(self.slots[slot].leader));
        let before = std::mem::replace(&mut self.slots[leader].cluster.asked, at);
        if at <= before {
            self.policy.touch(leader);
        }
    }

    fn stretch(&self, key: Key) -> Key {
        Key::new(key.file, key.block / self.together as u64)
    }

    /// A block's position in its stretch.
    fn position_in_stretch(&self, slot: Slot) -> u8 {
        (self.slots[slot].key.block % self.together as u64) as u8
    }

    /// Removes a block from its cluster, and so from the policy. It is still in the tables.
    pub(super) fn leave(&mut self, slot: Slot) {
        let leader = Slot(std::mem::replace(&mut self.slots[slot].leader, NONE));
        let others =
            self.in_stretch(self.slots[slot].key).find(|&other| self.slots[other].leader == leader.0);
        match others {
            None => self.policy.remove(leader),
            Some(next) if leader == slot => self.lead(slot, next),
            Some(_) => self.weigh(leader),
        }
    }

    /// Block `is` leads the cluster from now on, instead of `was`.
    fn lead(&mut self, was: Slot, is: Slot) {
        self.slots[is].cluster = self.slots[was].cluster;
        self.follow(was, is);
        self.weigh(is);
    }

    /// A block has another slot; the blocks that it leads follow.
    pub(super) fn renumber_leader(&mut self, from: Slot, to: Slot) {
        if self.slots[to].leader == from.0 {
            self.follow(from, to);
        }
    }

    fn follow(&mut self, was: Slot, is: Slot) {
        self.policy.renumber(was, is);
        for member in self.all_led_by(was, self.slots[is].key) {
            self.slots[member].leader = is.0;
        }
    }

    /// Updates the policy's weight of a cluster.
    pub(super) fn weigh(&mut self, leader: Slot) {
        let weight = self.members(leader).map(|member| self.slots[member].weight()).sum();
        self.policy.reweigh(leader, weight);
    }

    /// Moves the block's cluster to the main queue.
    pub(super) fn promote(&mut self, slot: Slot) {
        self.policy.promote(Slot(self.slots[slot].leader));
    }

    /// How long the policy expects this block to stay.
    pub(super) fn heat(&self, slot: Slot) -> Heat {
        self.policy.heat(Slot(self.slots[slot].leader))
    }

    /// True if the policy expects this block to stay.
    pub(super) fn stays(&self, slot: Slot) -> bool {
        self.policy.stays(Slot(self.slots[slot].leader))
    }

    /// Removes the blocks of an evicted cluster, which was that hot. Returns how many.
    pub(super) fn disband(&mut self, leader: Slot, heat: Heat) -> u64 {
        let mut gone = 0;
        for member in self.all_led_by(leader, self.slots[leader].key) {
            self.report_eviction(member, heat);
            self.slots[member].leader = NONE;
            self.retire(member);
            gone += 1;
        }
        gone
    }

    /// The blocks of a cluster in the stretch of `key`, as a list of their own, so that they can be changed.
    fn all_led_by(&self, leader: Slot, key: Key) -> impl Iterator<Item = Slot> + use<> {
        let mut slots = [NONE; MOST];
        let led = self.in_stretch(key).filter(|&slot| self.slots[slot].leader == leader.0);
        slots.iter_mut().zip(led).for_each(|(slot, found)| *slot = found.0);
        slots.into_iter().filter(|&slot| slot != NONE).map(Slot)
    }

    fn members(&self, leader: Slot) -> impl Iterator<Item = Slot> + '_ {
        let others = self.in_stretch(self.slots[leader].key);
        others.filter(move |&other| self.slots[other].leader == leader.0)
    }

    /// The stored blocks of the stretch of `key`.
    fn in_stretch(&self, key: Key) -> impl Iterator<Item = Slot> + '_ {
        let blocks = self.together as u64;
        let first = key.block - key.block % blocks;
        let keys = (0..blocks).filter_map(move |at| Some(Key::new(key.file, first.checked_add(at)?)));
        keys.filter_map(|key| self.index.find(key, &self.slots))
    }

    /// True if clusters and blocks agree. For tests.
    pub(super) fn clusters_agree(&self) -> bool {
        let mut held = self.slots.iter().filter(|(_, entry)| entry.state == SlotState::Stored);
        held.all(|(slot, entry)| {
            let leader = Slot(entry.leader);
            self.slots[leader].leader == leader.0 && self.members(leader).any(|member| member == slot)
        })
    }
}
