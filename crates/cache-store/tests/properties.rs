//! Any sequence of calls: a hit has the content admitted last and not dropped; memory is counted right; the limit holds.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

use std::collections::HashMap;

use eke_cache_store::{
    Admitted, FileId, Incompressible, Key, Lookup, Scratch, Store, StoreSpec, Ticket, WorkDone, Worker,
};
use eke_model::units::Bytes;
use proptest::prelude::*;

mod content;
use content::{noise, text};

const BLOCK: usize = 4096;

#[derive(Debug, Clone)]
enum Call {
    Admit(Key, Kind, u64),
    Submit(Key, Kind, u64),
    /// Takes a ticket for later.
    Ask(Key),
    /// Admits by the oldest ticket.
    AdmitLate(Kind, u64),
    Get(Key),
    Work,
    Round,
    DropBlock(Key),
    DropRange(FileId, u64, u64),
    DropFile(FileId),
    Resize(u64),
    Damage(Key),
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    Noise,
    Zero,
}

fn content(kind: Kind, seed: u64) -> Vec<u8> {
    let len = 1 + (seed as usize * 997) % BLOCK;
    match kind {
        Kind::Text => text(seed % 50, len),
        Kind::Noise => noise(seed, len),
        Kind::Zero => vec![0; len],
    }
}

fn key() -> impl Strategy<Value = Key> {
    (0..3u64, 0..150u64).prop_map(|(file, block)| Key::new(FileId(file), block))
}

fn call() -> impl Strategy<Value = Call> {
    let kind = || prop_oneof![4 => Just(Kind::Text), 2 => Just(Kind::Noise), 1 => Just(Kind::Zero)];
    let file = || (0..3u64).prop_map(FileId);
    prop_oneof![
        12 => (key(), kind(), 0..1000u64).prop_map(|(k, kind, seed)| Call::Admit(k, kind, seed)),
        6 => (key(), kind(), 0..1000u64).prop_map(|(k, kind, seed)| Call::Submit(k, kind, seed)),
        4 => key().prop_map(Call::Ask),
        4 => (kind(), 0..1000u64).prop_map(|(kind, seed)| Call::AdmitLate(kind, seed)),
        8 => key().prop_map(Call::Get),
        2 => Just(Call::Work),
        1 => Just(Call::Round),
        3 => key().prop_map(Call::DropBlock),
        1 => (file(), 0..150u64, 0..200u64).prop_map(|(f, from, len)| Call::DropRange(f, from, from + len)),
        1 => file().prop_map(Call::DropFile),
        1 => prop_oneof![Just(0), Just(600 << 10), Just(1 << 20), Just(3 << 20), 0..4u64 << 20].prop_map(Call::Resize),
        1 => key().prop_map(Call::Damage),
    ]
}

/// What the store may return.
#[derive(Default)]
struct Model {
    /// The content admitted last and not dropped: the only content of a hit.
    last: HashMap<Key, Vec<u8>>,
    /// Queued blocks, each with the number of drops before it.
    waiting: Vec<(Key, u64, Vec<u8>)>,
    tickets: Vec<(Ticket, u64)>,
    drops: HashMap<Key, u64>,
}

impl Model {
    fn drops_of(&self, key: Key) -> u64 {
        self.drops.get(&key).copied().unwrap_or(0)
    }

    fn drop_keys(&mut self, which: impl Fn(Key) -> bool) {
        for file in 0..3 {
            for block in (0..150).map(|block| Key::new(FileId(file), block)).filter(|&key| which(key)) {
                self.last.remove(&block);
                *self.drops.entry(block).or_default() += 1;
            }
        }
    }

    fn came_in(&mut self, key: Key, admitted: Admitted, block: Vec<u8>) {
        if admitted == Admitted::Stored {
            self.last.insert(key, block);
        }
    }

    /// Records the queued blocks that a worker has admitted.
    fn worked(&mut self, holds: impl Fn(Key) -> bool) {
        for (key, drops, block) in std::mem::take(&mut self.waiting) {
            if drops == self.drops_of(key) && holds(key) {
                // A block that was stored already has the same content if the caller keeps to the rules; here it may not.
                self.last.entry(key).or_insert(block);
            }
        }
    }
}

/// A store and its model.
struct Subject<'s> {
    store: &'s Store,
    scratch: Scratch,
    worker: Worker<'s>,
    out: Vec<u8>,
    model: Model,
}

type Step = Result<(), TestCaseError>;

impl Subject<'_> {
    fn step(&mut self, call: Call) -> Step {
        match call {
            Call::Admit(key, kind, seed) => {
                self.admit(self.store.ticket(key), self.model.drops_of(key), kind, seed)?
            }
            Call::Submit(key, kind, seed) => self.submit(key, content(kind, seed)),
            Call::Ask(key) => self.model.tickets.push((self.store.ticket(key), self.model.drops_of(key))),
            Call::AdmitLate(..) if self.model.tickets.is_empty() => {}
            Call::AdmitLate(kind, seed) => {
                let (ticket, drops) = self.model.tickets.remove(0);
                self.admit(ticket, drops, kind, seed)?;
            }
            Call::Get(key) => self.get(key)?,
            Call::Work => self.work(),
            Call::Round => self.store.begin_round(),
            Call::DropBlock(key) => {
                let _ = self.store.drop_block(key);
                self.model.drop_keys(|k| k == key);
            }
            Call::DropRange(file, from, to) => {
                self.store.drop_range(file, from..to);
                self.model.drop_keys(|k| k.file == file && (from..to).contains(&k.block));
            }
            Call::DropFile(file) => {
                self.store.drop_file(file);
                self.model.drop_keys(|k| k.file == file);
            }
            Call::Resize(limit) => self.store.resize(Bytes(limit)),
            Call::Damage(key) => self.damage(key)?,
        }
        self.check()
    }

    fn admit(&mut self, ticket: Ticket, drops: u64, kind: Kind, seed: u64) -> Step {
        let (key, block) = (ticket.key(), content(kind, seed));
        let held = self.store.contains(key);
        let admitted = self.store.admit(&mut self.scratch, ticket, &block);
        prop_assert!(held || admitted != Admitted::Present);
        if drops != self.model.drops_of(key) {
            prop_assert_eq!(admitted, Admitted::Stale);
        }
        forget_evicted(self.store, &mut self.model);
        self.model.came_in(key, admitted, block);
        Ok(())
    }

    fn submit(&mut self, key: Key, block: Vec<u8>) {
        match self.store.submit(0, self.store.ticket(key), &block) {
            Admitted::Queued => self.model.waiting.push((key, self.model.drops_of(key), block)),
            admitted => self.model.came_in(key, admitted, block),
        }
    }

    fn get(&mut self, key: Key) -> Step {
        match self.store.get(&mut self.scratch, key, &mut self.out) {
            Lookup::Hit(len) => {
                prop_assert_eq!(Some(&self.out[..len]), self.model.last.get(&key).map(|b| &b[..]))
            }
            Lookup::Miss(_) => prop_assert!(!self.store.contains(key)),
            Lookup::Corrupted(_) => prop_assert!(false, "corrupted"),
        }
        Ok(())
    }

    fn work(&mut self) {
        while let WorkDone::Compressed(_) | WorkDone::Recompressed(_) = self.worker.step() {}
        forget_evicted(self.store, &mut self.model);
        self.model.worked(|key| self.store.contains(key));
    }

    fn damage(&mut self, key: Key) -> Step {
        if self.store.damage(key) {
            let found = self.store.get(&mut self.scratch, key, &mut self.out);
            prop_assert!(matches!(found, Lookup::Corrupted(_)));
            prop_assert!(!self.store.contains(key));
        }
        Ok(())
    }

    fn check(&mut self) -> Step {
        forget_evicted(self.store, &mut self.model);
        prop_assert_eq!(self.store.check(), Ok(()));
        let stats = self.store.stats();
        prop_assert!(stats.held <= stats.limit.max(Bytes(32 << 10)), "{:?}", stats);
        Ok(())
    }
}

fn run(incompressible: Incompressible, calls: Vec<Call>) -> Step {
    let usual = StoreSpec::for_cpus(Bytes::mib(2), 1);
    let spec = StoreSpec { block_size: BLOCK, shards: 2, queue_depth: 4, batch: 3, incompressible, ..usual };
    let store = &Store::new(spec).unwrap();
    let (scratch, worker) = (store.scratch().unwrap(), store.worker(0).unwrap());
    let mut subject = Subject { store, scratch, worker, out: vec![0; BLOCK], model: Model::default() };
    calls.into_iter().try_for_each(|call| subject.step(call))
}

/// The model does not know which blocks the policy evicted.
fn forget_evicted(store: &Store, model: &mut Model) {
    model.last.retain(|&key, _| store.contains(key));
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    prop::collection::vec(call(), 1..400)
}

fn handling() -> impl Strategy<Value = Incompressible> {
    prop_oneof![Just(Incompressible::Keep), Just(Incompressible::KeepFew), Just(Incompressible::Refuse)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    #[test]
    fn any_calls_keep_the_rules(handling in handling(), calls in calls()) {
        run(handling, calls)?;
    }
}
