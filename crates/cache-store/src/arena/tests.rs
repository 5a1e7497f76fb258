//! Any sequence of takes, cuts, gives, compactions and drains: every block keeps its bytes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Address, Arena, Drained, Owners};

#[derive(Debug, Clone, Copy)]
struct Block {
    address: Address,
    len: usize,
    fill: u8,
    pinned: bool,
}

#[derive(Default)]
struct Blocks(BTreeMap<u32, Block>);

impl Owners for Blocks {
    fn is_pinned(&self, owner: u32) -> bool {
        self.0[&owner].pinned
    }

    fn moved(&mut self, owner: u32, address: Address) {
        let block = self.0.get_mut(&owner).unwrap();
        assert!(!block.pinned, "a pinned block was moved");
        block.address = address;
    }
}

impl Blocks {
    /// A block chosen by any number.
    fn pick(&self, number: u32) -> Option<u32> {
        let index = number as usize % self.0.len().max(1);
        self.0.keys().nth(index).copied()
    }

    #[expect(unsafe_code, reason = "reads what the arena holds")]
    fn check(&self, arena: &Arena) {
        let taken: usize = self.0.values().map(|b| super::rounded(b.len)).sum();
        assert!(arena.is_consistent() && taken == arena.taken());
        for block in self.0.values() {
            // SAFETY: one thread, and no arena call while the slice is used.
            let bytes = unsafe { arena.bytes(block.address, block.len).get() };
            assert!(bytes.iter().all(|&byte| byte == block.fill), "bytes have changed");
        }
    }
}

#[derive(Debug, Clone)]
enum Call {
    Take(usize),
    Cut(u32, usize),
    Give(u32),
    Pin(u32, bool),
    Compact(usize),
    Drain,
}

fn call() -> impl Strategy<Value = Call> {
    let len = || prop_oneof![1..500usize, 1000..66_000usize];
    prop_oneof![
        8 => len().prop_map(Call::Take),
        2 => (any::<u32>(), 1..30_000usize).prop_map(|(n, len)| Call::Cut(n, len)),
        4 => any::<u32>().prop_map(Call::Give),
        2 => (any::<u32>(), any::<bool>()).prop_map(|(n, pinned)| Call::Pin(n, pinned)),
        1 => len().prop_map(Call::Compact),
        1 => Just(Call::Drain),
    ]
}

fn take(arena: &mut Arena, blocks: &mut Blocks, owner: u32, len: usize) {
    let address = arena.take(len, owner).or_else(|| {
        arena.grow().unwrap();
        arena.take(len, owner)
    });
    let block =
        Block { address: address.expect("a whole slab is free"), len, fill: owner as u8 | 1, pinned: false };
    arena.write(block.address, &vec![block.fill; len]);
    blocks.0.insert(owner, block);
}

fn cut(arena: &mut Arena, blocks: &mut Blocks, owner: u32, len: usize) {
    let block = blocks.0.get_mut(&owner).unwrap();
    if len <= block.len {
        block.len = len;
        arena.cut(block.address, len);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn every_block_keeps_its_bytes(calls in prop::collection::vec(call(), 1..150)) {
        let (mut arena, mut blocks) = (Arena::default(), Blocks::default());
        for (number, call) in (0u32..).zip(calls) {
            match call {
                Call::Take(len) => take(&mut arena, &mut blocks, number, len),
                Call::Cut(which, len) => blocks.pick(which).into_iter().for_each(|o| cut(&mut arena, &mut blocks, o, len)),
                Call::Give(which) => {
                    if let Some(block) = blocks.pick(which).and_then(|owner| blocks.0.remove(&owner)) {
                        arena.give(block.address);
                    }
                }
                Call::Pin(which, pinned) => {
                    blocks.pick(which).and_then(|o| blocks.0.get_mut(&o)).into_iter().for_each(|b| b.pinned = pinned);
                }
                Call::Compact(len) => {
                    let fits = arena.compact(len, &mut blocks);
                    prop_assert!(!fits || arena.take(len, u32::MAX).inspect(|&address| arena.give(address)).is_some());
                }
                Call::Drain => {
                    let before = arena.resident();
                    let drained = arena.drain(&mut blocks);
                    prop_assert_eq!(before - arena.resident(), usize::from(drained == Drained::Slab));
                }
            }
            blocks.check(&arena);
        }
    }
}
