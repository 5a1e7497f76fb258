//! A connection to a cluster: one to each member.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redis::cluster::{ClusterClientBuilder, ClusterConnection, NodeAddress};
use redis::cluster_read_routing::{
    ClusterTopology, ReadCandidates, ReadRoutingStrategy, ReadRoutingStrategyFactory,
};
use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::{Cmd, ErrorKind, RedisError, RedisResult, Value};

use crate::lost::{Lost, To};
use crate::refusal::is_away;
use crate::within::{ANSWER_WITHIN, FIRST_WITHIN};

/// See the module. Members that fail make it no worse for the others, so it is used until another one takes its place.
pub struct Cluster {
    connection: ClusterConnection,
    routes: Arc<Routes>,
    seen: Seen,
}

/// How it was after an event.
#[derive(Debug, Default)]
struct Seen {
    event: u64,
    is_stale: bool,
    /// What is lost, as a sentence.
    loss: Option<String>,
}

/// Which member is asked over one connection.
#[derive(Debug)]
struct Routes {
    lost: Arc<Lost>,
    to: To,
    /// The last event before the connection was made.
    since: u64,
    /// What the cluster said then, and the event at which that became so.
    members: Mutex<Option<(ClusterTopology, u64)>>,
    /// A member said that another one has the slot now.
    has_moved: AtomicBool,
}

/// The library tells what it learns of the cluster to a strategy. Whom to ask is decided before it is called.
struct Listener(Arc<Routes>);

impl ReadRoutingStrategy for Listener {
    fn on_topology_changed(&self, topology: ClusterTopology) {
        let event = self.0.lost.learned(&topology);
        *self.0.lock() = Some((topology, event));
    }

    fn route_read<'a>(&self, candidates: &ReadCandidates<'a>) -> &'a NodeAddress {
        match candidates {
            ReadCandidates::AnyNode(all) => all.primary(),
            ReadCandidates::ReplicasOnly(replicas) => replicas.replicas().first(),
        }
    }
}

struct Listeners(Arc<Routes>);

impl ReadRoutingStrategyFactory for Listeners {
    fn create_strategy(&self) -> Box<dyn ReadRoutingStrategy> {
        Box::new(Listener(Arc::clone(&self.0)))
    }
}

impl Routes {
    fn lock(&self) -> MutexGuard<'_, Option<(ClusterTopology, u64)>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn route(&self, slot: u16) -> Option<NodeAddress> {
        let members = self.lock();
        let shard = members.as_ref()?.0.shard_for_slot(slot)?;
        self.lost.route(shard, slot, self.to, self.since).cloned()
    }

    /// All masters with their replicas.
    fn shards(&self) -> Vec<(NodeAddress, Vec<NodeAddress>)> {
        let members = self.lock();
        let shards = members.iter().flat_map(|(topology, _)| topology.shards());
        shards.map(|shard| (shard.primary().clone(), shard.replicas().to_vec())).collect()
    }

    fn members(&self) -> impl Iterator<Item = NodeAddress> {
        self.shards().into_iter().flat_map(|(master, replicas)| std::iter::once(master).chain(replicas))
    }

    fn is_lost(&self, member: &NodeAddress) -> bool {
        self.lost.is_lost(member, self.to, self.since)
    }

    fn failed(&self, member: &NodeAddress) {
        self.lost.failed(member, self.to, self.since);
    }

    /// What is lost, as a sentence.
    fn loss(&self) -> Option<String> {
        let shards = self.shards();
        let lives = |member: &NodeAddress| !self.is_lost(member);
        let of_master = shards.iter().find(|(master, _)| !lives(master)).map(|(master, replicas)| {
            let instead =
                if replicas.iter().any(lives) { "reads go to its replica" } else { "reads go to the origin" };
            format!("{master} does not answer: {instead}")
        });
        of_master.or_else(|| {
            let replica = shards.iter().flat_map(|(_, replicas)| replicas).find(|replica| !lives(replica))?;
            Some(format!("{replica}, a replica, does not answer"))
        })
    }

    fn is_outdated(&self) -> bool {
        let changed = self.lost.changed();
        self.lock().as_ref().is_some_and(|(_, event)| *event != changed)
    }
}

impl Cluster {
    /// Connects to all members, and notes those that do not answer.
    ///
    /// # Errors
    /// No master answers.
    pub fn connect(builder: ClusterClientBuilder, lost: &Arc<Lost>, to: To) -> RedisResult<Self> {
        let routes = Arc::new(Routes {
            since: lost.last(),
            to,
            lost: Arc::clone(lost),
            members: Mutex::new(None),
            has_moved: AtomicBool::new(false),
        });
        let client = builder.read_routing_strategy(Listeners(Arc::clone(&routes))).build()?;
        let connection = client.get_connection()?;
        connection.set_write_timeout(Some(ANSWER_WITHIN))?;
        connection.set_auto_reconnect(false);
        let mut cluster = Self { connection, routes, seen: Seen::default() };
        cluster.ping_all()?;
        let has_replicas = cluster.routes.shards().iter().any(|(_, replicas)| !replicas.is_empty());
        let within = if has_replicas && to == To::Any { FIRST_WITHIN } else { ANSWER_WITHIN };
        cluster.connection.set_read_timeout(Some(within))?;
        Ok(cluster)
    }

    /// The library has a connection also if no member has answered.
    fn ping_all(&mut self) -> RedisResult<()> {
        let mut outcome = Err(nobody());
        for (master, replicas) in self.routes.shards() {
            match self.ping(&master) {
                Ok(()) => outcome = Ok(()),
                Err(e) => outcome = outcome.map_err(|_| e),
            }
            for replica in replicas {
                let _ = self.ping(&replica);
            }
        }
        outcome
    }

    fn ping(&mut self, member: &NodeAddress) -> RedisResult<()> {
        let answer = self.at(member, &redis::cmd("PING"));
        if answer.is_err() {
            self.routes.failed(member);
        }
        answer.map(drop)
    }

    fn at(&mut self, member: &NodeAddress, command: &Cmd) -> RedisResult<Value> {
        let member = SingleNodeRoutingInfo::ByAddress { host: member.host().to_owned(), port: member.port() };
        self.connection.route_command(command, RoutingInfo::SingleNode(member))
    }

    /// Asks the member that has the slot. One that does not answer, or says that it cannot now, is lost to all connections that ask the same members.
    ///
    /// # Errors
    /// What the library or the engine says. Without a code the answer did not come.
    pub fn query(&mut self, slot: u16, command: &Cmd) -> RedisResult<Value> {
        let member = self.routes.route(slot).ok_or_else(nobody)?;
        let given = self.ask(&member, command);
        let Err(e) = &given else { return given };
        let Some((next, _)) = e.redirect_node() else { return given };
        let Ok(next) = NodeAddress::try_from(next) else { return given };
        let is_for_once = e.code() == Some("ASK");
        self.follow(&next, is_for_once, command).unwrap_or(given)
    }

    fn ask(&mut self, member: &NodeAddress, command: &Cmd) -> RedisResult<Value> {
        let given = self.at(member, command);
        if given.as_ref().is_err_and(|e| is_away(e.code())) {
            self.routes.failed(member);
        }
        given
    }

    /// The answer of the member that another one named. `None`: there is no connection to it yet, and nobody waits for one.
    fn follow(&mut self, next: &NodeAddress, is_for_once: bool, command: &Cmd) -> Option<RedisResult<Value>> {
        if !is_for_once {
            self.routes.has_moved.store(true, Ordering::Relaxed);
        }
        if self.routes.is_lost(next) || !self.routes.members().any(|member| member == *next) {
            return None;
        }
        // A user may lack the right to say so.
        if is_for_once && self.ask(next, &redis::cmd("ASKING")).is_err() {
            return None;
        }
        Some(self.ask(next, command))
    }

    /// The answers of the masters that live.
    ///
    /// # Errors
    /// None answers; or what one of them refuses.
    pub fn query_masters(&mut self, command: &Cmd) -> RedisResult<Vec<Value>> {
        let (mut answers, mut last) = (Vec::new(), nobody());
        for (master, _) in self.routes.shards() {
            if self.routes.is_lost(&master) {
                continue;
            }
            match self.ask(&master, command) {
                Ok(answer) => answers.push(answer),
                Err(e) if is_away(e.code()) => last = e,
                Err(e) => return Err(e),
            }
        }
        if answers.is_empty() { Err(last) } else { Ok(answers) }
    }

    /// Whether some member can be asked for a slot.
    pub fn has_route(&self, slot: u16) -> bool {
        self.routes.route(slot).is_some()
    }

    /// Whether another connection should take its place: a member was lost, or the members or their slots have changed.
    pub fn is_stale(&mut self) -> bool {
        self.seen().is_stale || self.routes.has_moved.load(Ordering::Relaxed)
    }

    fn seen(&mut self) -> &Seen {
        let event = self.routes.lost.last();
        if self.seen.event != event {
            let is_stale =
                self.routes.is_outdated() || self.routes.members().any(|m| self.routes.is_lost(&m));
            self.seen = Seen { event, is_stale, loss: self.routes.loss() };
        }
        &self.seen
    }

    /// What is lost, as a sentence.
    pub fn loss(&mut self) -> Option<&str> {
        self.seen().loss.as_deref()
    }

    /// Whether no member can be asked any more.
    pub fn is_dead(&self) -> bool {
        self.routes.members().all(|member| self.routes.is_lost(&member))
    }
}

fn nobody() -> RedisError {
    RedisError::from((ErrorKind::Io, "no member with this slot answers"))
}
