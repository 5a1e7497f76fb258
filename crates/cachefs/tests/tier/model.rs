//! Random operations, compared with plain bytes.

use super::*;

#[derive(Debug, Clone)]
enum Op {
    Read(u64, usize),
    Write(u64, usize),
    Append(usize),
    Truncate(u64),
    Foreign(u64, usize),
    ForeignEnd(u64),
    Open,
    Compress,
    Damage(u64),
    Resize(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let (at, len) = (0..80_000_u64, 1..40_000_usize);
    prop_oneof![
        6 => (at.clone(), len.clone()).prop_map(|(at, len)| Op::Read(at, len)),
        3 => (at.clone(), len.clone()).prop_map(|(at, len)| Op::Write(at, len)),
        1 => (at.clone(), 1..200_usize).prop_map(|(at, len)| Op::Write(at, len)),
        1 => len.clone().prop_map(Op::Append),
        2 => at.clone().prop_map(Op::Truncate),
        1 => (at.clone(), len).prop_map(|(at, len)| Op::Foreign(at, len)),
        1 => at.prop_map(Op::ForeignEnd),
        1 => Just(Op::Open),
        2 => Just(Op::Compress),
        1 => (0..20_u64).prop_map(Op::Damage),
        1 => (0..3_u64).prop_map(Op::Resize),
    ]
}

fn put(model: &mut Vec<u8>, at: usize, data: &[u8]) {
    model.resize(model.len().max(at + data.len()), 0);
    model[at..at + data.len()].copy_from_slice(data);
}

fn apply(set: &mut Set, model: &mut Vec<u8>, op: &Op, seed: u64) {
    match *op {
        Op::Read(at, len) => {
            let at_most = |at: usize| at.min(model.len());
            let expected = &model[at_most(at as usize)..at_most(at as usize + len)];
            assert!(set.read(at, len) == expected, "read of {len} at {at} of {}", model.len());
        }
        Op::Write(at, len) => {
            set.write(WritePosition::At(at), &text(len, seed));
            put(model, at as usize, &text(len, seed));
        }
        Op::Append(len) => {
            set.write(WritePosition::End, &text(len, seed));
            model.extend(text(len, seed));
        }
        Op::Truncate(size) => {
            set.truncate(size);
            model.resize(size as usize, 0);
        }
        Op::Foreign(at, len) => {
            set.other.write_all_at(&text(len, seed), at).unwrap();
            put(model, at as usize, &text(len, seed));
            set.open();
        }
        Op::ForeignEnd(size) => {
            set.other.set_len(size).unwrap();
            model.resize(size as usize, 0);
            set.open();
        }
        Op::Open => _ = set.open(),
        Op::Compress => set.compress(),
        Op::Damage(block) => _ = set.store.damage(Key::new(set.file, block)),
        Op::Resize(mib) => set.store.resize(Bytes::mib(mib)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_read_is_what_the_file_holds(
        ops in proptest::collection::vec(op(), 1..60),
        sync in any::<bool>(),
    ) {
        let mut set = set(if sync { Compress::Sync } else { Compress::Async });
        let mut model = Vec::new();
        for (seed, op) in ops.iter().enumerate() {
            apply(&mut set, &mut model, op, seed as u64);
        }
        prop_assert_eq!(set.store.check(), Ok(()));
        let all = set.read(0, model.len() + BLOCK);
        prop_assert!(all == model);
    }
}
