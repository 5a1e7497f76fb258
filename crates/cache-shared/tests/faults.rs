//! A tier whose other process is slow, fails, is cut off, or lies: no wrong block, and no reader waits longer than it said.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use eke_cache_shared::decide::SETTLED_NS;
use eke_cache_shared::frame::{Ask, OfferedBlock, Reply};
use eke_cache_shared::key::{BlockKey, Name};
use eke_cache_shared::record::{StoredBlock, encode};
use eke_cache_shared::shared::PARTS;
use eke_cache_shared::{FileVersion, Link, Offer, Origin, Shared, SharedOptions};
use eke_cache_store::{FileId, Form, Key, Store, StoreSpec};
use eke_model::units::Bytes;
use eke_testkit::wait::wait_for;
use proptest::prelude::*;

const VERSION: FileVersion = FileVersion { file: 7, size: 1 << 30, times_ns: [1, 2, 3] };
const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(5);

/// What a fake engine does with an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// It never answers.
    Silent,
    /// It answers one of the blocks, and nothing more.
    Cut,
    /// It says that it failed.
    Failed,
    /// The socket refuses the ask.
    Refused,
    /// Bytes of another block.
    Other,
    /// Of another version.
    Old,
    /// A byte is changed.
    Flipped,
    /// Bytes that are no message.
    Garbage,
    /// Blocks that nobody asked for, with numbers beyond any group.
    Unasked,
}

const FAULTS: [Fault; 10] = [
    Fault::None,
    Fault::Silent,
    Fault::Cut,
    Fault::Failed,
    Fault::Refused,
    Fault::Other,
    Fault::Old,
    Fault::Flipped,
    Fault::Garbage,
    Fault::Unasked,
];

#[derive(Default)]
struct Engine {
    values: Mutex<HashMap<BlockKey, Vec<u8>>>,
    fault: Mutex<Option<Fault>>,
    tier: Mutex<Weak<Shared>>,
}

struct ToEngine(Arc<Engine>);

impl Link for ToEngine {
    fn ask(&self, message: &[u8]) -> io::Result<()> {
        let (ask, fault) =
            (Ask::decode(message).unwrap(), self.0.fault.lock().unwrap().unwrap_or(Fault::None));
        if fault == Fault::Refused {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let tier = self.0.tier.lock().unwrap().upgrade().unwrap();
        let values = self.0.values.lock().unwrap();
        let value = |index: u8| values.get(&BlockKey { group: ask.group, index }).cloned();
        let mut blocks: Vec<(u8, Option<Vec<u8>>)> = ask.indices.iter().map(|&i| (i, value(i))).collect();
        match fault {
            Fault::Silent => return Ok(()),
            Fault::Cut => blocks.truncate(1),
            Fault::Other | Fault::Old => {
                let version = if fault == Fault::Old { FileVersion { size: 1, ..VERSION } } else { VERSION };
                let wrong = encode(
                    &name(version, 9999),
                    &StoredBlock { form: Form::Raw, raw_len: 5, compressed: b"wrong" },
                );
                blocks.iter_mut().for_each(|(_, value)| *value = Some(wrong.clone()));
            }
            Fault::Flipped => blocks.iter_mut().for_each(|(index, value)| {
                if let Some(value) = value {
                    let at = usize::from(*index) * 7919 % value.len();
                    value[at] ^= 4;
                }
            }),
            Fault::Unasked => blocks = (0..=255).map(|index| (index, Some(vec![1]))).collect(),
            _ => {}
        }
        let blocks: Vec<_> = blocks.iter().map(|(i, value)| (*i, value.as_deref())).collect();
        let messages = match fault {
            Fault::Failed => Reply::Failed(ask.id).encode(),
            Fault::Garbage => vec![vec![3; 20], vec![], vec![9; 70], message.to_vec()],
            _ => Reply::Blocks(ask.id, blocks).encode(),
        };
        drop(values);
        // From another thread, as in a worker.
        std::thread::spawn(move || messages.iter().for_each(|message| tier.reply(message)));
        Ok(())
    }

    fn offer(&self, message: &[u8]) -> io::Result<()> {
        let offer = OfferedBlock::decode(message).unwrap();
        self.0.values.lock().unwrap().insert(offer.key, offer.value.to_vec());
        Ok(())
    }
}

fn name(version: FileVersion, block: u64) -> Name {
    Name { origin: Origin::named("farm"), version, block_size: 65_536, block }
}

fn tier() -> (Arc<Engine>, Arc<Shared>) {
    let engine = Arc::new(Engine::default());
    let options = SharedOptions {
        origin: Origin::named("farm"),
        block_size: 65_536,
        is_cluster: true,
        seal: None,
        bandwidth: 1 << 40,
        settled_ns: SETTLED_NS,
        patience: None,
    };
    let tier = Arc::new(Shared::new(Box::new(ToEngine(Arc::clone(&engine))), options));
    *engine.tier.lock().unwrap() = Arc::downgrade(&tier);
    (engine, tier)
}

fn fill(engine: &Engine, blocks: std::ops::Range<u64>) {
    for block in blocks {
        let bytes = content(block);
        let stored = StoredBlock { form: Form::Raw, raw_len: bytes.len(), compressed: &bytes };
        let (name, mut values) = (name(VERSION, block), engine.values.lock().unwrap());
        values.insert(name.key(&[0; 16]), encode(&name, &stored));
    }
}

fn content(block: u64) -> Vec<u8> {
    (0..1000u64).map(|at| (block * 31 + at) as u8).collect()
}

/// Gets blocks and checks the bytes of those that come.
fn get(tier: &Shared, blocks: &[u64], wait: Duration) -> usize {
    let found = tier.get(VERSION, blocks, wait).found;
    for block in &found {
        assert!(blocks.contains(&block.block) && block.compressed == content(block.block), "{block:?}");
    }
    found.len()
}

#[test]
fn blocks_come_from_several_groups_and_those_that_lack_are_missed() {
    let (engine, tier) = tier();
    fill(&engine, 20..40);
    let blocks: Vec<u64> = (25..45).collect();
    assert_eq!(get(&tier, &blocks, LONG), 15);
    assert_eq!(tier.stats().misses, 5);
}

#[test]
fn each_fault_costs_blocks_and_is_counted() {
    for fault in FAULTS {
        let (engine, tier) = tier();
        fill(&engine, 0..8);
        *engine.fault.lock().unwrap() = Some(fault);
        let came = get(&tier, &[0, 1, 2, 3], if fault == Fault::None { LONG } else { SHORT });
        let stats = tier.stats();
        match fault {
            Fault::None => assert_eq!(came, 4),
            Fault::Cut => assert!(came <= 1 && stats.late >= 3, "{stats:?}"),
            Fault::Silent | Fault::Garbage => assert_eq!((came, stats.late), (0, 4), "{fault:?}"),
            Fault::Refused => assert_eq!((came, stats.failed), (0, 4)),
            // On a busy machine the answer may be late, too.
            Fault::Failed => assert_eq!((came, stats.failed + stats.late), (0, 4)),
            Fault::Other | Fault::Old | Fault::Flipped | Fault::Unasked => {
                assert!(came == 0 && stats.refused + stats.late >= 4, "{fault:?} {stats:?}");
            }
        }
    }
}

#[test]
fn after_failures_nobody_asks_that_part_and_others_go_on() {
    let (engine, tier) = tier();
    fill(&engine, 0..4096);
    *engine.fault.lock().unwrap() = Some(Fault::Refused);
    (0..10).for_each(|_| assert_eq!(get(&tier, &[0], LONG), 0));
    let stats = tier.stats();
    assert!(stats.open == 1 && stats.paused > 0 && stats.failed < 10, "{stats:?}");
    *engine.fault.lock().unwrap() = None;
    // Blocks of all parts.
    let came: usize = (1..100).map(|group| get(&tier, &[group * 32], LONG)).sum();
    assert!(came > 90 && PARTS > 1, "{came}");
    wait_for("the breaker", || get(&tier, &[0], LONG) == 1);
    assert_eq!(tier.stats().open, 0);
}

/// A machine that needs nothing of the tier any more: nobody asks the part again.
#[test]
fn after_a_fault_that_nobody_sees_the_end_of_nothing_is_reported() {
    let (engine, tier) = tier();
    *engine.fault.lock().unwrap() = Some(Fault::Refused);
    (0..3).for_each(|_| assert_eq!(get(&tier, &[0], LONG), 0));
    assert_eq!(tier.stats().open, 1);
    wait_for("the part to be unknown", || tier.stats().open == 0);
    assert_eq!((get(&tier, &[0], LONG), tier.stats().open), (0, 1), "and it still fails");
}

#[test]
fn a_block_that_cannot_go_does_not_keep_a_closed_tier() {
    let (_engine, tier) = tier();
    let store = Store::new(StoreSpec::for_cpus(Bytes::mib(64), 1)).unwrap();
    tier.offer(Offer { ticket: store.ticket(Key::new(FileId(7), 8)), version: VERSION, sum: 0 });
    tier.close();
    tier.run_offers(&store).unwrap();
    assert_eq!(tier.stats().not_offered, 0, "it ended before it gave the block up");
}

#[test]
fn what_was_read_is_offered_and_what_changed_since_is_not() {
    let (engine, tier) = tier();
    let store = Store::new(StoreSpec::for_cpus(Bytes::mib(64), 1)).unwrap();
    let mut scratch = store.scratch().unwrap();
    let mut admit = |block, bytes: &[u8], version| {
        let ticket = store.ticket(Key::new(FileId(7), block));
        let _ = store.admit(&mut scratch, ticket, bytes);
        tier.offer(Offer { ticket, version, sum: Offer::sum(&content(block).repeat(10)) });
    };
    (0..4).for_each(|block| admit(block, &content(block).repeat(10), VERSION));
    // The store has other bytes than were read.
    admit(5, &content(6).repeat(10), VERSION);
    // Never admitted.
    tier.offer(Offer { ticket: store.ticket(Key::new(FileId(7), 8)), version: VERSION, sum: 0 });
    // Dropped since.
    let _ = store.drop_block(Key::new(FileId(7), 3));
    std::thread::scope(|scope| {
        scope.spawn(|| tier.run_offers(&store).unwrap());
        wait_for("all offers", || tier.stats().offered + tier.stats().not_offered == 6);
        tier.close();
    });
    assert_eq!((tier.stats().offered, engine.values.lock().unwrap().len()), (3, 3));
    let found = tier.get(VERSION, &[0, 1, 2, 3, 5, 8], LONG).found;
    assert_eq!(found.iter().map(|block| block.block).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(found.iter().all(|block| block.compressed.len() < block.raw_len), "compressed as in the store");
    let other = tier.get(FileVersion { size: 9, ..VERSION }, &[0, 1], LONG);
    assert!(other.asked == 2 && other.found.is_empty(), "another version");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn no_sequence_of_faults_makes_a_wrong_byte(faults in prop::collection::vec((0usize..FAULTS.len(), 0u64..100), 1..20)) {
        let (engine, tier) = tier();
        fill(&engine, 0..110);
        for (fault, from) in faults {
            *engine.fault.lock().unwrap() = Some(FAULTS[fault]);
            let blocks: Vec<u64> = (from..from + 5).collect();
            get(&tier, &blocks, SHORT);
        }
    }

    #[test]
    fn foreign_messages_have_no_effect(messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 0..20)) {
        let (_engine, tier) = tier();
        messages.iter().for_each(|message| tier.reply(message));
        prop_assert_eq!(tier.stats().hits, 0);
    }
}
