//! 500 programs with 400 files each stay below 16 MiB, and so does more than that.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

use std::path::Path;
use std::time::Duration;

use eke_prefetch_model::choose::{ChoiceOutcome, Occasion};
use eke_prefetch_model::{
    Event, FileSet, Kind, Launch, LaunchEnd, Pages, Program, ProgramId, Span, Stamp, Touched, UsedBy,
    UserEvent,
};
use eke_prefetch_store::{
    Access, Decision, MOST_BYTES, MOST_DECISIONS, MOST_EVENTS, MOST_PROGRAMS, ProgramStore,
};
use eke_statistics::Random;
use eke_testkit::tree::in_memory;

const NOW: i64 = 1_800_000_000;

/// Likely small: the least of three numbers below `n`.
fn small(random: &mut Random, n: u64) -> u64 {
    random.below(n).min(random.below(n)).min(random.below(n))
}

fn pages(random: &mut Random) -> Pages {
    let spans = 1 + small(random, 24);
    let mut at = 0;
    let mut next = || {
        at += small(random, 400);
        Span::new(at, at + 1 + small(random, 40))
    };
    (0..spans).filter_map(|_| next()).collect()
}

/// A use of file `number`, which is the same for all programs.
fn touched(path: String, number: u64, random: &mut Random) -> Touched {
    Touched {
        path: path.into(),
        kind: Kind::File,
        stamp: Stamp {
            dev: 0xfd01,
            ino: 1_000_000 + number,
            size: 4096 * (number % 5000),
            mtime_ns: 1_700_000_000_000_000_000 + number as i64 * 1_000_003,
        },
        pages: pages(random),
        stale: Pages::default(),
        weight: random.below(10_000) as f32 / 10_000.0,
        used_by: UsedBy::Unknown,
    }
}

/// 50 files of its own, and 350 of 8,000 shared ones; low numbers are likelier.
fn set(program: u64, random: &mut Random) -> FileSet {
    let mut files: Vec<Touched> = (0..50)
        .map(|n| {
            let path = format!("/usr/lib/x86_64-linux-gnu/program-{program}/modules/module-{n:03}.so");
            touched(path, 100_000 + 100 * program + n, random)
        })
        .collect();
    let mut shared: Vec<u64> = (0..350).map(|_| small(random, 8000)).collect();
    shared.sort_unstable();
    shared.dedup();
    files.extend(shared.into_iter().map(|n| {
        let path = format!("/usr/share/icons/hicolor/scalable/apps/org.example.shared-file-{n:04}.svg");
        touched(path, n, random)
    }));
    FileSet { files }
}

fn launch(program: u64, set: FileSet) -> Launch {
    Launch {
        program: Program::of_exe(format!("/usr/bin/program-{program}")),
        uid: 1000,
        began_ns: NOW * 1_000_000_000,
        took: Duration::from_secs(2),
        ended: LaunchEnd::Quiet,
        set,
        cold_bytes: 1 << 20,
    }
}

fn learn(store: &mut ProgramStore, program: u64, random: &mut Random) {
    let launch = launch(program, set(program, random));
    store.add_launch(&launch, &launch.set, NOW).unwrap();
}

fn fill_logs(store: &mut ProgramStore) {
    let happened = |n: usize| UserEvent {
        at_s: NOW as f64 + n as f64,
        user: 1000,
        event: Event::Start(ProgramId((n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))),
    };
    store.add_events(&(0..MOST_EVENTS).map(happened).collect::<Vec<_>>()).unwrap();
    let outcome = ChoiceOutcome::Chosen {
        bytes: 123_456_789,
        of_bytes: 234_567_891,
        saved_s: 1.234_567_89,
        of_s: 2.345_678_9,
    };
    let decision = |n: usize| Decision {
        at_s: NOW,
        occasion: Occasion::Ahead,
        program: ProgramId((n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        probability: 0.123_456_789,
        outcome,
        limit: None,
        usage: None,
    };
    store.add_decisions(&(0..MOST_DECISIONS).map(decision).collect::<Vec<_>>()).unwrap();
    store.put_state("mixture", 1, &vec![7; 256 << 10]).unwrap();
}

fn bytes(dir: &Path) -> u64 {
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn five_hundred_programs_are_kept_in_less_than_16_mib() {
    let dir = in_memory();
    let mut store = ProgramStore::open(dir.path(), "boot", NOW).unwrap().store;
    let mut random = Random::new(1);
    fill_logs(&mut store);
    for program in 0..MOST_PROGRAMS as u64 {
        learn(&mut store, program, &mut random);
    }
    let (records, size) = (store.records(NOW).unwrap().len(), store.bytes());
    println!("{records} programs, {size} bytes, {} in the directory", bytes(dir.path()));
    assert_eq!(records, MOST_PROGRAMS);
    assert!(size < MOST_BYTES && bytes(dir.path()) < MOST_BYTES, "{size}");
    let files = store.program(Program::of_exe("/usr/bin/program-7").id(), NOW).unwrap().unwrap().set.files;
    drop(store);
    assert_eq!(ProgramStore::open(dir.path(), "boot", NOW).unwrap().set_aside, None);
    assert!(files.len() > 350, "{}", files.len());
}

#[test]
fn larger_programs_are_made_to_fit() {
    let dir = in_memory();
    let mut store = ProgramStore::open(dir.path(), "boot", NOW).unwrap().store;
    let mut random = Random::new(2);
    for program in 0..200u64 {
        // larger than the bound of a set
        let long = |n: u64| {
            touched(format!("/{program}/{}/{n}", "d".repeat(2000)), program * 1000 + n, &mut Random::new(n))
        };
        let launch = launch(program, FileSet { files: (0..240).map(long).collect() });
        store.add_launch(&launch, &launch.set, NOW).unwrap();
        assert!(bytes(dir.path()) < MOST_BYTES, "{program}: {}", bytes(dir.path()));
    }
    learn(&mut store, 1000, &mut random);
    let records = store.records(NOW).unwrap();
    assert!((10..200).contains(&records.len()), "{}", records.len());
    assert!(records.iter().any(|r| r.program == Program::of_exe("/usr/bin/program-1000")));
    drop(store);
    assert!(ProgramStore::existing(dir.path(), Access::Read).is_ok());
}
