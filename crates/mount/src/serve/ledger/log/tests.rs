use std::sync::Arc;

use proptest::prelude::*;

use super::super::record::tests::any_entry;
use super::*;

/// A memory that can say what it looked like after any byte that was written.
#[derive(Debug, Clone, Default)]
struct Tape(Arc<Mutex<Vec<Step>>>);

#[derive(Debug, Clone)]
enum Step {
    Write(Vec<u8>, u64),
    Punch(u64, u64),
}

impl Tape {
    fn steps(&self) -> MutexGuard<'_, Vec<Step>> {
        self.0.lock().unwrap()
    }

    /// As a death leaves it within step `step`, after `bytes` of its bytes.
    fn cut(&self, step: usize, bytes: usize) -> Self {
        let mut steps = self.steps()[..=step].to_vec();
        match steps.last_mut() {
            Some(Step::Write(data, _)) => data.truncate(bytes),
            _ if bytes == 0 => drop(steps.pop()),
            _ => {}
        }
        Self(Arc::new(Mutex::new(steps)))
    }

    /// The bytes of a range, by playing every step.
    fn range(&self, offset: u64, len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        let mut set = |from: u64, data: &mut dyn Iterator<Item = u8>| {
            for (i, byte) in data.enumerate() {
                let at = from + i as u64;
                if let Some(slot) = at.checked_sub(offset).and_then(|i| out.get_mut(i as usize)) {
                    *slot = byte;
                }
            }
        };
        for step in self.steps().iter() {
            match step {
                Step::Write(data, at) => set(*at, &mut data.iter().copied()),
                Step::Punch(at, len) => set(*at, &mut (0..*len).map(|_| 0)),
            }
        }
        out
    }
}

impl Medium for Tape {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.steps().push(Step::Write(bytes.to_vec(), offset));
        Ok(())
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let there = self.end()?.saturating_sub(offset).min(len as u64);
        Ok(self.range(offset, there as usize))
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.steps().push(Step::Punch(offset, len.min(1 << 16)));
        Ok(())
    }

    fn end(&self) -> io::Result<u64> {
        let ends = self
            .steps()
            .iter()
            .map(|s| match s {
                Step::Write(data, at) => at + data.len() as u64,
                Step::Punch(..) => 0,
            })
            .collect::<Vec<_>>();
        Ok(ends.into_iter().max().unwrap_or(0))
    }
}

/// Small enough that a few dozen records are rewritten.
const FEW: u64 = 600;

fn same(a: &Nodes, b: &Nodes) -> bool {
    a.entries() == b.entries()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A worker dies at any byte of any write of the last entry: the next one knows the nodes as they were before that
    /// entry or after it, can go on noting, and is itself understood.
    #[test]
    fn a_death_at_any_byte_costs_at_most_the_last_entry(entries in proptest::collection::vec(any_entry(), 1..40), more in any_entry()) {
        let tape = Tape::default();
        let (log, _) = Log::with_small(tape.clone(), FEW).unwrap();
        let mut after = Nodes::default();
        for entry in &entries {
            let before = after.clone();
            let first = tape.steps().len();
            log.append(&entry.entry()).unwrap();
            after.apply(&entry.entry());
            let last = tape.steps().len();
            // Each write is cut at a few places, the whole of it among them.
            for (step, bytes) in (first..last).flat_map(|s| [0, 1, 7, 9, 30, 1000].map(|b| (s, b))) {
                let dead = tape.cut(step, bytes);
                let (next, replay) = Log::with_small(dead.clone(), FEW).unwrap();
                prop_assert!(same(&replay.nodes, &before) || same(&replay.nodes, &after), "cut at {step}, {bytes}");
                let mut then = replay.nodes;
                next.append(&more.entry()).unwrap();
                then.apply(&more.entry());
                let (_, again) = Log::with_small(dead, FEW).unwrap();
                prop_assert!(same(&again.nodes, &then) && again.foreign.is_none());
            }
        }
    }

    #[test]
    fn foreign_bytes_end_a_replay_and_nothing_else(entries in proptest::collection::vec(any_entry(), 1..20), at in 0usize..400, byte in 1u8..) {
        let tape = Tape::default();
        let (log, _) = Log::open(tape.clone()).unwrap();
        entries.iter().for_each(|e| log.append(&e.entry()).unwrap());
        let at = HALVES[0] + (at as u64) % log.tail().len;
        let old = tape.range(at, 1)[0];
        tape.write_at(&[old ^ byte], at).unwrap();
        let (_, replay) = Log::open(tape).unwrap();
        let known = (0..=entries.len()).any(|n| {
            let mut nodes = Nodes::default();
            entries[..n].iter().for_each(|e| nodes.apply(&e.entry()));
            same(&nodes, &replay.nodes)
        });
        prop_assert!(known);
    }
}

#[test]
fn what_is_outdated_gives_its_memory_back() {
    let memfd = Memfd::new().unwrap();
    let (log, _) = Log::with_small(memfd, 4096).unwrap();
    for _ in 0..100_000 {
        log.append(&Entry::Opened { node: 5 }).unwrap();
        log.append(&Entry::Released { node: 5 }).unwrap();
    }
    log.append(&Entry::Opened { node: 5 }).unwrap();
    let blocks = rustix::fs::fstat(&log.medium).unwrap().st_blocks;
    assert!(log.tail().generation > 10 && blocks * 512 < 64 << 10, "{blocks} blocks of 512 bytes");
    let (_, replay) = Log::open(log.medium).unwrap();
    assert_eq!((replay.nodes.opens(5), replay.foreign), (1, None));
}

#[test]
fn several_threads_note_while_it_is_rewritten() {
    let (log, _) = Log::with_small(Memfd::new().unwrap(), 2048).unwrap();
    std::thread::scope(|s| {
        for node in 10..14 {
            let log = &log;
            s.spawn(move || {
                for _ in 0..2000 {
                    log.append(&Entry::Opened { node }).unwrap();
                    log.append(&Entry::Released { node }).unwrap();
                }
                log.append(&Entry::Opened { node }).unwrap();
            });
        }
    });
    let (_, replay) = Log::open(log.medium).unwrap();
    assert!((10..14).all(|node| replay.nodes.opens(node) == 1) && replay.foreign.is_none());
}

#[test]
fn a_foreign_header_is_an_error() {
    let tape = Tape::default();
    tape.write_at(&[7; 30], 0).unwrap();
    assert!(Log::open(tape).is_err());
}

#[test]
fn a_log_longer_than_one_piece_is_read_to_its_end() {
    let (log, _) = Log::open(Memfd::new().unwrap()).unwrap();
    for node in 2..40_000 {
        let name = std::ffi::OsStr::new("a name of some length");
        log.append(&Entry::Known { node, parent: 1, name, dev: 3, ino: node, born_ns: 0, generation: 0 })
            .unwrap();
    }
    assert!(log.tail().len > 3 << 20);
    let (_, replay) = Log::open(log.medium).unwrap();
    assert_eq!((replay.nodes.known().len(), replay.foreign), (39_998, None));
}
