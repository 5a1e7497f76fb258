//! Members of a cluster that did not answer, and which member has which slots. Pure, without a clock: events have numbers, later ones larger numbers. All
//! connections of the process share it: after one of them has waited for a member in vain, the others ask its replica at once.
//!
//! A member that was lost after a connection was made is not asked over that connection any more. Another connection takes its place, which is made beside
//! it (`crate::renewal`) and pings all members: so no reader waits for an attempt.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redis::cluster::NodeAddress;
use redis::cluster_read_routing::{ClusterTopology, Shard};

/// The most members that are remembered as lost.
const MOST: usize = 4096;

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// A replica while its master is lost: a block has its version in its name and a checksum, so an old replica is only one that lacks blocks.
    Any,
    /// Masters alone.
    Masters,
}

/// Slots, their master, and its replicas in order.
type Owner = (Vec<(u16, u16)>, NodeAddress, Vec<NodeAddress>);

/// See the module.
#[derive(Debug, Default)]
pub struct Lost(Mutex<Events>);

#[derive(Debug, Default)]
struct Events {
    last: u64,
    /// Of those who ask any member, and of those who ask masters alone. The former wait less, so what is lost to them may be slow.
    lost: [BTreeMap<NodeAddress, u64>; 2],
    owners: Vec<Owner>,
    owners_changed: u64,
}

impl Events {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn is_lost(&self, member: &NodeAddress, to: To, since: u64) -> bool {
        self.lost[to as usize].get(member).is_some_and(|lost| *lost > since)
    }
}

impl Lost {
    fn lock(&self) -> MutexGuard<'_, Events> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the last event.
    pub fn last(&self) -> u64 {
        self.lock().last
    }

    /// A member did not answer over a connection that was made after event `since`. One that is known as lost to that connection is no news.
    pub fn failed(&self, member: &NodeAddress, to: To, since: u64) {
        let mut events = self.lock();
        if events.is_lost(member, to, since) {
            return;
        }
        let number = events.next();
        let lost = &mut events.lost[to as usize];
        lost.insert(member.clone(), number);
        let oldest = lost.iter().min_by_key(|(_, lost)| **lost).map(|(member, _)| member.clone());
        if let Some(oldest) = oldest.filter(|_| lost.len() > MOST) {
            lost.remove(&oldest);
        }
    }

    /// Whether a member was lost after event `since`.
    pub fn is_lost(&self, member: &NodeAddress, to: To, since: u64) -> bool {
        self.lock().is_lost(member, to, since)
    }

    /// A connection has learned which member has which slots. Returns the event at which that became so.
    pub fn learned(&self, topology: &ClusterTopology) -> u64 {
        let mut owners: Vec<Owner> = topology.shards().map(owner).collect();
        owners.sort();
        let mut events = self.lock();
        if events.owners != owners {
            events.owners = owners;
            events.owners_changed = events.next();
        }
        events.owners_changed
    }

    /// The event at which members or slots last changed, as far as a connection has learned.
    pub fn changed(&self) -> u64 {
        self.lock().owners_changed
    }

    /// The member that is asked for a slot over a connection that was made after event `since`. `None`: all that could be are lost.
    pub fn route<'a>(&self, shard: &'a Shard, slot: u16, to: To, since: u64) -> Option<&'a NodeAddress> {
        let events = self.lock();
        let lives = |member: &&NodeAddress| !events.is_lost(member, to, since);
        let master = Some(shard.primary()).filter(lives);
        if to == To::Masters {
            return master;
        }
        // Its replicas share the slots of a lost master.
        let first = usize::from(slot) % shard.replicas().len().max(1);
        let mut replicas = shard.replicas().iter().cycle().skip(first).take(shard.replicas().len());
        master.or_else(|| replicas.find(lives))
    }
}

fn owner(shard: &Shard) -> Owner {
    let mut replicas = shard.replicas().to_vec();
    replicas.sort();
    (shard.slot_ranges().to_vec(), shard.primary().clone(), replicas)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(port: u16) -> NodeAddress {
        NodeAddress::new("10.0.0.1", port)
    }

    fn shard(slots: (u16, u16), master: u16, replicas: &[u16]) -> Shard {
        let replicas: Vec<_> = replicas.iter().map(|port| member(*port)).collect();
        Shard::new(vec![slots], member(master), replicas)
    }

    fn port(lost: &Lost, shard: &Shard, to: To, since: u64) -> Option<u16> {
        lost.route(shard, 0, to, since).map(NodeAddress::port)
    }

    #[test]
    fn a_lost_masters_reads_go_to_a_replica_that_lives_and_writes_nowhere() {
        let (lost, shard) = (Lost::default(), shard((0, 9), 1, &[2, 3]));
        assert_eq!([To::Any, To::Masters].map(|to| port(&lost, &shard, to, 0)), [Some(1); 2]);
        lost.failed(&member(1), To::Any, 0);
        assert_eq!([To::Any, To::Masters].map(|to| port(&lost, &shard, to, 0)), [Some(2), Some(1)]);
        lost.failed(&member(1), To::Masters, 0);
        assert_eq!([To::Any, To::Masters].map(|to| port(&lost, &shard, to, 0)), [Some(2), None]);
        let both: Vec<_> =
            (0..4).map(|slot| lost.route(&shard, slot, To::Any, 0).map(NodeAddress::port)).collect();
        assert_eq!(both, [Some(2), Some(3), Some(2), Some(3)], "replicas share the slots");
        lost.failed(&member(2), To::Any, 0);
        assert_eq!(port(&lost, &shard, To::Any, 0), Some(3));
        lost.failed(&member(3), To::Any, 0);
        assert_eq!(port(&lost, &shard, To::Any, 0), None);
    }

    #[test]
    fn a_connection_made_after_a_loss_asks_again_and_other_connections_do_not() {
        let (lost, shard) = (Lost::default(), shard((0, 9), 1, &[]));
        lost.failed(&member(1), To::Any, 0);
        let since = lost.last();
        assert_eq!([0, since].map(|since| port(&lost, &shard, To::Any, since)), [None, Some(1)]);
        // An ask of the old connection that was under way then.
        lost.failed(&member(1), To::Any, 0);
        assert_eq!(port(&lost, &shard, To::Any, since), Some(1));
        lost.failed(&member(1), To::Any, since);
        assert_eq!(port(&lost, &shard, To::Any, since), None);
    }

    #[test]
    fn only_other_members_or_slots_are_a_change() {
        let lost = Lost::default();
        let of = |shards: Vec<Shard>| lost.learned(&ClusterTopology::from_shards(shards));
        let first = of(vec![shard((0, 9), 1, &[2, 3]), shard((10, 19), 4, &[])]);
        assert_eq!(
            (first, first),
            (lost.changed(), of(vec![shard((10, 19), 4, &[]), shard((0, 9), 1, &[3, 2])]))
        );
        let promoted = of(vec![shard((0, 9), 2, &[3]), shard((10, 19), 4, &[])]);
        assert!(promoted > first && lost.changed() == promoted);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_newest_stays() {
        let lost = Lost::default();
        (0..10_000).for_each(|port| lost.failed(&member(port), To::Any, 0));
        assert!(lost.is_lost(&member(9_999), To::Any, 0) && !lost.is_lost(&member(0), To::Any, 0));
        assert_eq!(lost.lock().lost[0].len(), MOST);
    }
}
