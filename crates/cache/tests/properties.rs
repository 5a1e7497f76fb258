//! Any sequence of calls: a hit is what came in last and was not dropped; memory is what is counted; the limit holds.

use std::collections::HashMap;

use eke_cache::{
    Admitted, Did, FileId, Incompressible, Key, Lookup, Lru, Policy, S3Fifo, Sieve, Store, StoreSpec, Ticket,
};
use eke_core::units::Bytes;
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
    /// Admits by the oldest ticket taken.
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

/// What the store may say.
#[derive(Default)]
struct Model {
    /// What came in last and was not dropped: the only thing that a hit may be.
    last: HashMap<Key, Vec<u8>>,
    /// What waits, with its place in the history of drops.
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
        if admitted == Admitted::Held {
            self.last.insert(key, block);
        }
    }

    /// A worker's turn took in, or did not, what waited.
    fn worked(&mut self, holds: impl Fn(Key) -> bool) {
        for (key, drops, block) in std::mem::take(&mut self.waiting) {
            if drops == self.drops_of(key) && holds(key) {
                // If it was held already, that is the same content for a caller who keeps to the rules; here it is not.
                self.last.entry(key).or_insert(block);
            }
        }
    }
}

fn run<P: Policy>(incompressible: Incompressible, calls: &[Call]) -> Result<(), TestCaseError> {
    let usual = StoreSpec::for_cpus(Bytes::mib(2), 1);
    let spec = StoreSpec { block_size: BLOCK, shards: 2, queue_depth: 4, batch: 3, incompressible, ..usual };
    let store = Store::<P>::new(spec).unwrap();
    let (mut scratch, mut worker, mut out) =
        (store.scratch().unwrap(), store.worker(0).unwrap(), vec![0; BLOCK]);
    let mut model = Model::default();
    for call in calls {
        match call.clone() {
            Call::Admit(key, kind, seed) => {
                let (block, held) = (content(kind, seed), store.contains(key));
                let admitted = store.admit(&mut scratch, store.ticket(key), &block);
                prop_assert!(held || admitted != Admitted::Present);
                forget_evicted(&store, &mut model);
                model.came_in(key, admitted, block);
            }
            Call::Submit(key, kind, seed) => {
                let block = content(kind, seed);
                match store.submit(0, store.ticket(key), &block) {
                    Admitted::Queued => model.waiting.push((key, model.drops_of(key), block)),
                    admitted => model.came_in(key, admitted, block),
                }
            }
            Call::Ask(key) => model.tickets.push((store.ticket(key), model.drops_of(key))),
            Call::AdmitLate(kind, seed) if !model.tickets.is_empty() => {
                let ((ticket, drops), block) = (model.tickets.remove(0), content(kind, seed));
                let admitted = store.admit(&mut scratch, ticket, &block);
                if drops != model.drops_of(ticket.key()) {
                    prop_assert_eq!(admitted, Admitted::Stale);
                }
                forget_evicted(&store, &mut model);
                model.came_in(ticket.key(), admitted, block);
            }
            Call::AdmitLate(..) => {}
            Call::Get(key) => match store.get(&mut scratch, key, &mut out) {
                Lookup::Hit(len) => prop_assert_eq!(Some(&out[..len]), model.last.get(&key).map(|b| &b[..])),
                Lookup::Miss(_) => prop_assert!(!store.contains(key)),
                Lookup::Corrupted(_) => prop_assert!(false, "corrupted"),
            },
            Call::Work => {
                while let Did::Packed(_) | Did::Denser(_) = worker.step() {}
                forget_evicted(&store, &mut model);
                model.worked(|key| store.contains(key));
            }
            Call::Round => store.begin_round(),
            Call::DropBlock(key) => {
                let _ = store.drop_block(key);
                model.drop_keys(|k| k == key);
            }
            Call::DropRange(file, from, to) => {
                store.drop_range(file, from..to);
                model.drop_keys(|k| k.file == file && (from..to).contains(&k.block));
            }
            Call::DropFile(file) => {
                store.drop_file(file);
                model.drop_keys(|k| k.file == file);
            }
            Call::Resize(limit) => store.resize(Bytes(limit)),
            Call::Damage(key) => {
                if store.damage(key) {
                    prop_assert!(matches!(store.get(&mut scratch, key, &mut out), Lookup::Corrupted(_)));
                    prop_assert!(!store.contains(key));
                }
            }
        }
        forget_evicted(&store, &mut model);
        prop_assert_eq!(store.check(), Ok(()));
        let stats = store.stats();
        prop_assert!(stats.held <= stats.limit.max(Bytes(32 << 10)), "{:?}", stats);
    }
    Ok(())
}

/// The model does not know whom the policy chose.
fn forget_evicted<P: Policy>(store: &Store<P>, model: &mut Model) {
    model.last.retain(|&key, _| store.contains(key));
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    prop::collection::vec(call(), 1..400)
}

fn handling() -> impl Strategy<Value = Incompressible> {
    prop_oneof![Just(Incompressible::Keep), Just(Incompressible::Refuse)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn with_s3_fifo(handling in handling(), calls in calls()) {
        run::<S3Fifo>(handling, &calls)?;
    }

    #[test]
    fn with_sieve(handling in handling(), calls in calls()) {
        run::<Sieve>(handling, &calls)?;
    }

    #[test]
    fn with_lru(handling in handling(), calls in calls()) {
        run::<Lru>(handling, &calls)?;
    }
}
