//! The tier as a worker sees it: asks under way, and what is believed of the answers. Its locks are the last ones: no other is taken under
//! them.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use eke_cache_store::Form;

use crate::breaker::Breaker;
use crate::decide::{self, Asking, Bandwidth};
use crate::frame::{Ask, EngineState, Reply};
use crate::key::{FileVersion, Group, Name, Origin, SLOTS};
use crate::notes::Offers;
use crate::record::{self, StoredBlock};
use crate::seal::Seal;
use crate::stats::{Counters, Stats};

/// Parts of a cluster, ranges of slots, with a breaker each: a lost node of a cluster does not keep readers from the others. So many that few
/// of them have slots of two nodes, up to some tens of nodes.
pub const PARTS: usize = 96;

/// Connections that asks go over, each for neighbouring parts: a node that hangs keeps only those waiting that have slots of it.
pub const CONNECTIONS: usize = 6;

/// The unit of costs, in bytes.
const UNIT: f64 = 65_536.0;

/// The part that a slot belongs to.
fn part(slot: u16) -> usize {
    usize::from(slot % SLOTS) * PARTS / usize::from(SLOTS)
}

/// The connection that a slot belongs to.
pub fn connection(slot: u16) -> usize {
    part(slot) * CONNECTIONS / PARTS
}

/// Sends messages to the engine's process.
pub trait Link: Send + Sync {
    /// Sends an ask; does not wait for room.
    ///
    /// # Errors
    /// What the kernel answers.
    fn ask(&self, message: &[u8]) -> io::Result<()>;

    /// Sends an offer, and waits for room.
    ///
    /// # Errors
    /// What the kernel answers.
    fn offer(&self, message: &[u8]) -> io::Result<()>;
}

/// The options.
#[derive(Debug)]
pub struct SharedOptions {
    /// Whose files.
    pub origin: Origin,
    /// The bytes of a block.
    pub block_size: usize,
    /// The engine is a cluster, so that a part of it can be lost alone.
    pub is_cluster: bool,
    /// For sealed blocks.
    pub seal: Option<Seal>,
    /// The most bytes that are offered in a second.
    pub bandwidth: u64,
    /// How long ago a file must have changed to be shared, in nanoseconds: [`decide::SETTLED_NS`], less where all nodes have one clock.
    pub settled_ns: i128,
    /// For tests: reads always ask, and wait so long, whatever the origin takes.
    pub patience: Option<Duration>,
}

/// A block from the tier, its bytes checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundBlock {
    /// Its number in the file.
    pub block: u64,
    /// How its bytes are stored.
    pub form: Form,
    /// Its length in the file.
    pub raw_len: usize,
    /// The stored bytes.
    pub compressed: Vec<u8>,
}

/// What an ask brought.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Blocks that were asked for: those of open parts are not.
    pub asked: usize,
    /// Those that came in time and are right.
    pub found: Vec<FoundBlock>,
}

/// Blocks of one group that a reader waits for.
#[derive(Debug)]
struct Waiting {
    left: usize,
    failed: bool,
    values: Vec<(u8, Vec<u8>)>,
}

#[derive(Debug)]
struct Asks {
    waiting: HashMap<u64, Waiting>,
    breakers: [Breaker; PARTS],
    engine: EngineState,
}

impl Default for Asks {
    fn default() -> Self {
        let breakers = [Breaker::default(); PARTS];
        Self { waiting: HashMap::new(), breakers, engine: EngineState::default() }
    }
}

/// An ask that was sent: its number, its part, and how many blocks.
struct Sent {
    id: u64,
    part: usize,
    group: u64,
    blocks: usize,
}

/// See the crate.
pub struct Shared {
    link: Box<dyn Link>,
    pub(crate) options: SharedOptions,
    asks: Mutex<Asks>,
    answered: Condvar,
    asking: Mutex<Asking>,
    next: AtomicU64,
    begun: Instant,
    pub(crate) offers: Offers,
    pub(crate) counters: Counters,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// `CLOCK_MONOTONIC` in µs, the same in all processes.
pub fn monotonic_us() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0) / 1000
}

impl Shared {
    /// A tier. Some thread must pass on what comes by [`Shared::reply`], another one run [`Shared::run_offers`].
    pub fn new(link: Box<dyn Link>, options: SharedOptions) -> Self {
        let offers = Offers::new(Bandwidth::new(options.bandwidth));
        Self {
            link,
            options,
            asks: Mutex::default(),
            answered: Condvar::new(),
            asking: Mutex::default(),
            // Answers to a worker before this one have other numbers.
            next: AtomicU64::new(monotonic_us() << 20),
            begun: Instant::now(),
            offers,
            counters: Counters::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Asks> {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now_us(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    pub(crate) fn link(&self) -> &dyn Link {
        &*self.link
    }

    pub(crate) fn name(&self, version: FileVersion, block: u64) -> Name {
        let block_size = u32::try_from(self.options.block_size).unwrap_or(u32::MAX);
        Name { origin: self.options.origin, version, block_size, block }
    }

    pub(crate) fn secret(&self) -> &[u8; 16] {
        self.options.seal.as_ref().map_or(&[0; 16], Seal::names)
    }

    /// How long ago a file must have changed to be shared, in nanoseconds.
    pub fn settled_ns(&self) -> i128 {
        self.options.settled_ns
    }

    fn asking(&self) -> MutexGuard<'_, Asking> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long a read of some blocks waits for the tier, by the origin's running cost of 64 KiB in µs; `nth` counts reads. `None`: it does not ask.
    pub fn wait_for(&self, (origin_us, blocks): (f64, usize), nth: u64) -> Option<Duration> {
        let asks = || self.asking().asks(origin_us, nth);
        let decided = || asks().then(|| decide::wait(origin_us * blocks as f64));
        self.options.patience.map_or_else(decided, Some)
    }

    /// Notes what an ask took, until its blocks were in the reply. A concurrent note counts, too.
    pub fn note(&self, answer: &Answer, took: Duration, origin_us: f64) {
        if answer.asked == 0 {
            return;
        }
        let units = (answer.asked * self.options.block_size) as f64 / UNIT;
        let found = answer.found.len() as f64 / answer.asked as f64;
        self.asking().note(took.as_secs_f64() * 1e6 / units.max(1.0), found, origin_us);
    }

    /// Asks for these blocks of a file, in ascending order, and waits for them until `wait` has passed.
    pub fn get(&self, version: FileVersion, blocks: &[u64], wait: Duration) -> Answer {
        let until = Instant::now() + wait;
        let until_us = monotonic_us() + u64::try_from(wait.as_micros()).unwrap_or(0);
        // All are sent before the first is waited for.
        let sent: Vec<Sent> = blocks
            .chunk_by(|a, b| a / crate::key::GROUP == b / crate::key::GROUP)
            .filter_map(|blocks| self.send(version, blocks, until_us))
            .collect();
        let mut answer = Answer::default();
        for sent in sent {
            answer.asked += sent.blocks;
            for (index, value) in self.wait(&sent, until) {
                let block = sent.group * crate::key::GROUP + u64::from(index);
                if blocks.contains(&block) {
                    answer.found.extend(self.checked(version, block, value));
                }
            }
        }
        answer
    }

    fn send(&self, version: FileVersion, blocks: &[u64], until_us: u64) -> Option<Sent> {
        let keys = blocks.iter().map(|block| self.name(version, *block).key(self.secret()));
        let keys: Vec<_> = keys.collect();
        let group = keys.first()?.group;
        let (part, id) = (self.part_of(group), self.next.fetch_add(1, Ordering::Relaxed));
        let mut asks = self.lock();
        if !asks.breakers[part].allows(self.now_us()) {
            self.counters.paused.add(blocks.len());
            return None;
        }
        asks.waiting.insert(id, Waiting { left: blocks.len(), failed: false, values: Vec::new() });
        drop(asks);
        let ask = Ask { id, until_us, group, indices: keys.iter().map(|key| key.index).collect() };
        let sent = Sent { id, part, group: blocks.first()? / crate::key::GROUP, blocks: blocks.len() };
        if self.link.ask(&ask.encode()).is_err() {
            self.lock().waiting.remove(&id);
            self.failed(&sent);
            return None;
        }
        Some(sent)
    }

    fn failed(&self, sent: &Sent) {
        self.counters.failed.add(sent.blocks);
        self.lock().breakers[sent.part].failed(self.now_us());
    }

    /// Waits for the answers to one ask, and tells its breaker. Returns the values that came.
    fn wait(&self, sent: &Sent, until: Instant) -> Vec<(u8, Vec<u8>)> {
        let mut asks = self.lock();
        loop {
            let is_complete = asks.waiting.get(&sent.id).is_none_or(|w| w.left == 0 || w.failed);
            let left = until.saturating_duration_since(Instant::now());
            if is_complete || left.is_zero() {
                break;
            }
            let waited = self.answered.wait_timeout(asks, left);
            asks = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let Some(waiting) = asks.waiting.remove(&sent.id) else { return Vec::new() };
        if waiting.left == 0 {
            asks.breakers[sent.part].succeeded();
        } else {
            asks.breakers[sent.part].failed(self.now_us());
            let counter = if waiting.failed { &self.counters.failed } else { &self.counters.late };
            counter.add(waiting.left);
        }
        waiting.values
    }

    /// A block if the value is that block.
    fn checked(&self, version: FileVersion, block: u64, value: Vec<u8>) -> Option<FoundBlock> {
        self.counters.bytes_in.add(value.len());
        let (name, mut buffer) = (self.name(version, block), Vec::new());
        let stored = match &self.options.seal {
            Some(seal) => seal.open(&name, &value, &mut buffer),
            None => record::decode(&name, &value),
        };
        let found = stored.filter(|stored| stored.raw_len <= self.options.block_size);
        let Some(StoredBlock { form, raw_len, compressed }) = found else {
            self.refuse();
            return None;
        };
        Some(FoundBlock { block, form, raw_len, compressed: compressed.to_vec() })
    }

    /// Counts a block that was not right.
    pub fn refuse(&self) {
        self.counters.refused.add(1);
    }

    /// Counts a block that was used.
    pub fn hit(&self) {
        self.counters.hits.add(1);
    }

    /// Takes a message from the engine's process. One that nobody waits for any more has no effect.
    pub fn reply(&self, message: &[u8]) {
        let mut asks = self.lock();
        match Reply::decode(message) {
            Some(Reply::Blocks(id, blocks)) => {
                let Some(waiting) = asks.waiting.get_mut(&id) else { return };
                for (index, value) in blocks.into_iter().take(waiting.left) {
                    waiting.left -= 1;
                    match value {
                        Some(value) => waiting.values.push((index, value.to_vec())),
                        None => self.counters.misses.add(1),
                    }
                }
            }
            Some(Reply::Failed(id)) => {
                let Some(waiting) = asks.waiting.get_mut(&id) else { return };
                waiting.failed = true;
            }
            Some(Reply::Engine(engine)) => asks.engine = engine,
            None => {}
        }
        drop(asks);
        self.answered.notify_all();
    }

    /// True if this part failed lately.
    pub(crate) fn is_open(&self, group: Group) -> bool {
        self.lock().breakers[self.part_of(group)].is_open(self.now_us())
    }

    /// The number of parts with a breaker each. One engine is lost as a whole: there only a connection can fail alone.
    pub fn parts(&self) -> usize {
        if self.options.is_cluster { PARTS } else { CONNECTIONS }
    }

    fn part_of(&self, group: Group) -> usize {
        let slot = group.slot();
        if self.options.is_cluster { part(slot) } else { connection(slot) }
    }

    /// The counters.
    pub fn stats(&self) -> Stats {
        let (asks, now_us) = (self.lock(), self.now_us());
        let open = asks.breakers.iter().filter(|breaker| breaker.is_open(now_us)).count() as u32;
        let engine = asks.engine.clone();
        drop(asks);
        self.counters.stats(open, engine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots are divided among masters as `--cluster create` does: evenly, rounded (`clusterManagerCommandCreate`).
    #[test]
    fn a_lost_master_takes_few_parts_of_others_with_it() {
        for masters in [3, 4, 5, 7, 16, 32] {
            let of = |slot: u16| usize::from(slot) * masters / usize::from(SLOTS);
            for lost in 0..masters {
                let mut parts: Vec<usize> = (0..SLOTS).filter(|slot| of(*slot) == lost).map(part).collect();
                parts.dedup();
                assert!(parts.len() <= PARTS / masters + 2, "{lost} of {masters}: {}", parts.len());
            }
        }
    }

    #[test]
    fn a_connection_has_neighbouring_parts() {
        let mut of: Vec<(usize, usize)> = (0..SLOTS).map(|slot| (part(slot), connection(slot))).collect();
        of.dedup();
        assert_eq!(of, (0..PARTS).map(|part| (part, part / (PARTS / CONNECTIONS))).collect::<Vec<_>>());
    }
}
