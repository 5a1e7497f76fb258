//! Replays a trace through a policy.

use std::collections::HashMap;

use eke_cache_store::FileId;
use eke_cache_store::policy::Slot;
use eke_model::units::Bytes;

use crate::{Policy, Request};

/// The counts of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rates {
    /// Requests.
    pub requests: u64,
    /// Requests for cached blocks.
    pub hits: u64,
    /// Total weight of the requests.
    pub bytes: u64,
    /// Total weight of the hits.
    pub hit_bytes: u64,
}

impl Rates {
    /// Hits divided by requests, 0 to 1.
    pub fn hit_rate(&self) -> f64 {
        self.hits as f64 / self.requests.max(1) as f64
    }
}

struct Cache<P> {
    policy: P,
    capacity: u64,
    held: u64,
    slots: HashMap<u64, Slot>,
    /// The block in each slot.
    contents: Vec<Request>,
    free: Vec<Slot>,
}

/// Replays a trace with a capacity. Every miss is admitted, unless it weighs more than the capacity.
pub fn replay<P: Policy>(capacity: Bytes, trace: impl IntoIterator<Item = Request>) -> Rates {
    let mut policy = P::default();
    policy.set_capacity(capacity);
    let mut cache = Cache {
        policy,
        capacity: capacity.0,
        held: 0,
        slots: HashMap::new(),
        contents: Vec::new(),
        free: Vec::new(),
    };
    let mut rates = Rates::default();
    for request in trace {
        let hit = u64::from(cache.ask(request));
        rates.requests += 1;
        rates.hits += hit;
        rates.bytes += u64::from(request.weight);
        rates.hit_bytes += hit * u64::from(request.weight);
    }
    rates
}

impl<P: Policy> Cache<P> {
    fn ask(&mut self, request: Request) -> bool {
        if let Some(&slot) = self.slots.get(&request.key) {
            self.policy.touch(slot);
            return true;
        }
        if self.make_room(u64::from(request.weight)) {
            self.admit(request);
        }
        false
    }

    fn make_room(&mut self, weight: u64) -> bool {
        while weight <= self.capacity && self.held + weight > self.capacity {
            let Some(slot) = self.policy.evict() else { return false };
            let gone = self.contents[slot.index()];
            self.held -= u64::from(gone.weight);
            self.slots.remove(&gone.key);
            self.free.push(slot);
        }
        weight <= self.capacity
    }

    fn admit(&mut self, request: Request) {
        let slot = self.free.pop().unwrap_or(Slot(self.contents.len() as u32));
        if slot.index() == self.contents.len() {
            self.contents.push(request);
            if self.policy.reserve(self.contents.capacity()).is_err() {
                self.contents.pop();
                return;
            }
        }
        self.contents[slot.index()] = request;
        self.slots.insert(request.key, slot);
        self.held += u64::from(request.weight);
        self.policy.admit(slot, FileId(request.key).hash(), request.weight);
    }
}
