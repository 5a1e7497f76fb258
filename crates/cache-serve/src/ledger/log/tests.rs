use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use eke_testkit::wait::wait_for;
use proptest::prelude::*;

use super::super::record::tests::any_entry;
use super::*;

/// A medium in memory that records every step.
#[derive(Debug, Clone, Default)]
struct Tape(Arc<Mutex<Inside>>);

#[derive(Debug, Clone, Default)]
struct Inside {
    /// The bytes before the second half, and those from there on.
    sides: [Vec<u8>; 2],
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
enum Step {
    Write(Vec<u8>, u64),
    Punch(u64, u64),
}

fn place(offset: u64) -> (usize, usize) {
    let side = usize::from(offset >= HALVES[1]);
    (side, (offset - [0, HALVES[1]][side]) as usize)
}

impl Inside {
    fn play(&mut self, step: Step) {
        match &step {
            Step::Write(bytes, offset) => {
                let (side, at) = place(*offset);
                let memory = &mut self.sides[side];
                memory.resize(memory.len().max(at + bytes.len()), 0);
                memory[at..at + bytes.len()].copy_from_slice(bytes);
            }
            Step::Punch(offset, len) => {
                let (side, at) = place(*offset);
                self.sides[side].iter_mut().skip(at).take(*len as usize).for_each(|b| *b = 0);
            }
        }
        self.steps.push(step);
    }
}

impl Tape {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap()
    }

    fn steps(&self) -> usize {
        self.inside().steps.len()
    }

    /// The medium after a death within step `step`, after `bytes` of its bytes.
    fn cut(&self, step: usize, bytes: usize) -> Self {
        let mut steps = self.inside().steps[..=step].to_vec();
        match steps.last_mut() {
            Some(Step::Write(data, _)) => data.truncate(bytes),
            _ if bytes == 0 => drop(steps.pop()),
            _ => {}
        }
        let tape = Self::default();
        steps.into_iter().for_each(|step| tape.inside().play(step));
        tape
    }
}

impl Medium for Tape {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.inside().play(Step::Write(bytes.to_vec(), offset));
        Ok(())
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let (side, at) = place(offset);
        Ok(self.inside().sides[side].iter().skip(at).take(len).copied().collect())
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.inside().play(Step::Punch(offset, len));
        Ok(())
    }

    fn end(&self) -> io::Result<u64> {
        let sides = &self.inside().sides;
        let second = sides[1].len() as u64;
        Ok(if second > 0 { HALVES[1] + second } else { sides[0].len() as u64 })
    }
}

/// So small that a few dozen records cause a rewrite.
const FEW: u64 = 600;

fn few<M: Medium>(medium: M) -> (Log<M>, Replay) {
    Log::with_small(medium, FEW, || ()).unwrap()
}

/// What the thread does that waits for it.
fn rewrite_if_outdated<M: Medium>(log: &Log<M>) {
    if log.tail().outdated {
        log.rewrite_when_outdated().unwrap();
    }
}

fn known(node: u64) -> Entry<'static> {
    let name = std::ffi::OsStr::new("a name of some length");
    Entry::Known { node, parent: 1, name, dev: 3, ino: node, born_ns: 0, generation: 0 }
}

fn same(a: &Nodes, b: &Nodes) -> bool {
    a.iter().eq(b.iter())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A worker dies at any byte of any write of the last entry: the next one reads the nodes as they were before or after that
    /// entry, appends more, and these are read again.
    #[test]
    fn a_death_at_any_byte_costs_at_most_the_last_entry(entries in proptest::collection::vec(any_entry(), 1..40), more in any_entry()) {
        let tape = Tape::default();
        let (log, _) = few(tape.clone());
        let mut after = Nodes::default();
        for entry in &entries {
            let before = after.clone();
            let first = tape.steps();
            log.append(&entry.entry()).unwrap();
            rewrite_if_outdated(&log);
            after.apply(&entry.entry());
            let last = tape.steps();
            // Each write is cut at a few places, the whole of it among them.
            for (step, bytes) in (first..last).flat_map(|s| [0, 1, 7, 9, 30, 1000].map(|b| (s, b))) {
                let dead = tape.cut(step, bytes);
                let (next, replay) = few(dead.clone());
                prop_assert!(same(&replay.nodes, &before) || same(&replay.nodes, &after), "cut at {step}, {bytes}");
                let mut then = replay.nodes;
                next.append(&more.entry()).unwrap();
                then.apply(&more.entry());
                let (_, again) = few(dead);
                prop_assert!(same(&again.nodes, &then) && again.bad_record.is_none());
            }
        }
    }

    #[test]
    fn a_changed_byte_ends_a_replay_and_nothing_else(entries in proptest::collection::vec(any_entry(), 1..20), at in 0usize..400, byte in 1u8..) {
        let tape = Tape::default();
        let (log, _) = Log::open(tape.clone()).unwrap();
        entries.iter().for_each(|e| log.append(&e.entry()).unwrap());
        let at = HALVES[0] + (at as u64) % log.tail().len;
        let old = tape.read_at(at, 1).unwrap()[0];
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
fn outdated_records_give_their_memory_back() {
    let memfd = Memfd::new().unwrap();
    let (log, _) = Log::with_small(memfd, 4096, || ()).unwrap();
    for _ in 0..100_000 {
        log.append(&Entry::Opened { node: 5 }).unwrap();
        log.append(&Entry::Released { node: 5 }).unwrap();
        rewrite_if_outdated(&log);
    }
    log.append(&Entry::Opened { node: 5 }).unwrap();
    let blocks = rustix::fs::fstat(&log.medium).unwrap().st_blocks;
    assert!(log.tail().generation > 10 && blocks * 512 < 64 << 10, "{blocks} blocks of 512 bytes");
    let (_, replay) = Log::open(log.medium).unwrap();
    assert_eq!((replay.nodes.opens(5), replay.bad_record), (1, None));
}

#[test]
fn several_threads_append_while_it_is_rewritten() {
    let (log, _) = Log::with_small(Memfd::new().unwrap(), 2048, || ()).unwrap();
    let log = &log;
    std::thread::scope(|s| {
        let append = |node| {
            for _ in 0..2000 {
                log.append(&Entry::Opened { node }).unwrap();
                log.append(&Entry::Released { node }).unwrap();
            }
            log.append(&Entry::Opened { node }).unwrap();
        };
        let appends: Vec<_> = (10..14).map(|node| s.spawn(move || append(node))).collect();
        while !appends.iter().all(|append| append.is_finished()) {
            rewrite_if_outdated(log);
        }
    });
    assert!(log.tail().generation > 0);
    let (_, replay) = Log::open(Memfd::of(log.medium.as_fd().try_clone_to_owned().unwrap())).unwrap();
    assert!((10..14).all(|node| replay.nodes.opens(node) == 1) && replay.bad_record.is_none());
}

#[test]
fn an_invalid_header_does_not_count() {
    let tape = Tape::default();
    let (log, _) = few(tape.clone());
    for _ in 0..200 {
        log.append(&Entry::Opened { node: 5 }).unwrap();
        rewrite_if_outdated(&log);
    }
    let generation = log.tail().generation;
    tape.write_at(&[7; 30], HEADERS[side(generation + 1)]).unwrap();
    let (_, replay) = Log::open(tape).unwrap();
    assert_eq!((replay.nodes.opens(5), generation > 0), (200, true));
}

#[test]
fn a_log_longer_than_one_piece_is_read_to_its_end() {
    let (log, _) = Log::open(Memfd::new().unwrap()).unwrap();
    (2..40_000).for_each(|node| log.append(&known(node)).unwrap());
    assert!(log.tail().len > 3 << 20);
    let (_, replay) = Log::open(log.medium).unwrap();
    assert_eq!((replay.nodes.known().len(), replay.bad_record), (39_998, None));
}

#[test]
fn who_opens_a_long_log_hears_how_it_goes_on() {
    let (log, _) = Log::open(Memfd::new().unwrap()).unwrap();
    (0..5 * REPORTED / 2).for_each(|_| log.append(&Entry::Opened { node: 5 }).unwrap());
    let mut heard = 0;
    Log::open_reporting(log.medium, || heard += 1).unwrap();
    assert_eq!(heard, 2);
}

/// A medium on which a rewrite waits.
struct Gate {
    medium: Memfd,
    /// The records that it refuses instead.
    refuses: AtomicBool,
    is_open: Mutex<bool>,
    opened: Condvar,
    waits: AtomicBool,
}

impl Gate {
    fn new() -> Self {
        Self {
            medium: Memfd::new().unwrap(),
            refuses: AtomicBool::new(false),
            is_open: Mutex::new(false),
            opened: Condvar::new(),
            waits: AtomicBool::new(false),
        }
    }

    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

impl Medium for Arc<Gate> {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if offset >= HALVES[1] {
            if self.refuses.load(Relaxed) && offset > HALVES[1] {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.waits.store(true, Relaxed);
            let is_open = self.is_open.lock().unwrap();
            drop(self.opened.wait_while(is_open, |is_open| !*is_open).unwrap());
        }
        self.medium.write_at(bytes, offset)
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.medium.read_at(offset, len)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.medium.punch(offset, len)
    }

    fn end(&self) -> io::Result<u64> {
        self.medium.end()
    }
}

#[test]
fn no_append_waits_for_a_rewrite_and_its_memory_is_counted() {
    let gate = Arc::new(Gate::new());
    let log = Arc::new(few(Arc::clone(&gate)).0);
    // More than one piece: the last one is written while nobody appends.
    (2..5000).for_each(|node| log.append(&known(node)).unwrap());
    let rewriter = Arc::clone(&log);
    std::thread::spawn(move || while rewriter.rewrite_when_outdated().is_ok() {});
    wait_for("a rewrite", || gate.waits.load(Relaxed));
    let appends = Arc::clone(&log);
    let appended = std::thread::spawn(move || {
        (5000..20_000).for_each(|node| appends.append(&known(node)).unwrap());
    });
    wait_for("all appends", || appended.is_finished());
    assert_eq!(log.tail().generation, 0);
    assert!(log.memory().0 > HALVES[0] + log.tail().len, "{:?}", log.memory());
    gate.open();
    wait_for("the end of all rewrites", || log.tail().generation > 0 && !log.tail().outdated);
    let (_, replay) = few(Arc::clone(&gate));
    assert_eq!((replay.nodes.known().len(), replay.bad_record), (19_998, None));
    wait_for("the memory", || log.memory() == Bytes(HALVES[0] + log.tail().len));
}

/// The next rewrite is shorter, and what follows it is not read.
#[test]
fn a_rewrite_that_fails_leaves_the_log_as_it_is() {
    let gate = Arc::new(Gate::new());
    gate.open();
    let (log, _) = few(Arc::clone(&gate));
    (2..2000).for_each(|node| log.append(&known(node)).unwrap());
    gate.refuses.store(true, Relaxed);
    assert!(log.rewrite_when_outdated().is_err() && !log.tail().outdated);
    gate.refuses.store(false, Relaxed);
    (2..1990).for_each(|node| log.append(&Entry::Forgotten { node }).unwrap());
    log.rewrite().unwrap();
    assert_eq!(log.tail().generation, 1);
    (1990..2000).for_each(|node| log.append(&Entry::Opened { node }).unwrap());
    let (_, replay) = few(gate);
    assert_eq!((replay.nodes.known().len(), replay.bad_record), (10, None));
}

#[test]
fn a_rewrite_writes_many_records_at_once() {
    let tape = Tape::default();
    let (log, _) = few(tape.clone());
    (2..2000).for_each(|node| log.append(&known(node)).unwrap());
    let before = tape.steps();
    rewrite_if_outdated(&log);
    assert!(log.tail().generation == 1 && tape.steps() - before < 10, "{} steps", tape.steps() - before);
}

#[test]
fn what_is_outdated_goes_when_it_is_opened() {
    let (log, _) = Log::open(Tape::default()).unwrap();
    (2..3000).for_each(|node| log.append(&known(node)).unwrap());
    let (log, replay) = Log::open(log.into_medium()).unwrap();
    assert!(replay.nodes.known().len() == 2998 && log.memory() > Bytes(128 << 10), "nothing is outdated");
    (10..3000).for_each(|node| log.append(&Entry::Forgotten { node }).unwrap());
    let (log, replay) = Log::open(log.into_medium()).unwrap();
    assert!(replay.nodes.known().len() == 8 && log.memory() < Bytes(8 << 10), "{:?}", log.memory());
    let (_, again) = Log::open(log.into_medium()).unwrap();
    assert!(same(&replay.nodes, &again.nodes));
}
