//! 500 programs with 400 files each stay below 16 MiB, and so does more than that.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

use std::path::Path;
use std::time::Duration;

use eke_prefetch_model::choose::{Occasion, Verdict};
use eke_prefetch_model::{
    Ended, Event, FileSet, Happened, Kind, Launch, Pages, Program, ProgramId, Span, Stamp, Touched,
};
use eke_prefetch_store::{Access, Decision, Keep, MOST_BYTES, MOST_DECISIONS, MOST_EVENTS, MOST_PROGRAMS};
use eke_testkit::tree::in_memory;

const NOW: i64 = 1_800_000_000;

/// Knuth's MMIX generator: the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    /// Small numbers are likely.
    fn few(&mut self, n: u64) -> u64 {
        self.below(n).min(self.below(n)).min(self.below(n))
    }

    fn pages(&mut self) -> Pages {
        let spans = 1 + self.few(24);
        let mut at = 0;
        let mut next = || {
            at += self.few(400);
            Span::new(at, at + 1 + self.few(40))
        };
        (0..spans).filter_map(|_| next()).collect()
    }
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
        pages: random.pages(),
        stale: Pages::default(),
        weight: random.below(10_000) as f32 / 10_000.0,
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
    let mut shared: Vec<u64> = (0..350).map(|_| random.few(8000)).collect();
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
        ended: Ended::Quiet,
        set,
        cold_bytes: 1 << 20,
    }
}

fn learn(keep: &mut Keep, program: u64, random: &mut Random) {
    let launch = launch(program, set(program, random));
    keep.learned(&launch, &launch.set, NOW).unwrap();
}

fn fill_logs(keep: &mut Keep) {
    let happened = |n: usize| Happened {
        at_s: NOW as f64 + n as f64,
        user: 1000,
        event: Event::Start(ProgramId((n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))),
    };
    keep.happened(&(0..MOST_EVENTS).map(happened).collect::<Vec<_>>()).unwrap();
    let verdict = Verdict::Chosen {
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
        verdict,
        limit: None,
        after: None,
    };
    keep.decided(&(0..MOST_DECISIONS).map(decision).collect::<Vec<_>>()).unwrap();
    keep.put_state("mixture", 1, &vec![7; 256 << 10]).unwrap();
}

fn bytes(dir: &Path) -> u64 {
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn five_hundred_programs_are_kept_in_less_than_16_mib() {
    let dir = in_memory();
    let mut keep = Keep::open(dir.path(), "boot", NOW).unwrap().keep;
    let mut random = Random(1);
    fill_logs(&mut keep);
    for program in 0..MOST_PROGRAMS as u64 {
        learn(&mut keep, program, &mut random);
    }
    let (records, size) = (keep.records(NOW).unwrap().len(), keep.bytes());
    println!("{records} programs, {size} bytes, {} in the directory", bytes(dir.path()));
    assert_eq!(records, MOST_PROGRAMS);
    assert!(size < MOST_BYTES && bytes(dir.path()) < MOST_BYTES, "{size}");
    let files = keep.known(Program::of_exe("/usr/bin/program-7").id(), NOW).unwrap().unwrap().set.files;
    drop(keep);
    assert_eq!(Keep::open(dir.path(), "boot", NOW).unwrap().set_aside, None);
    assert!(files.len() > 350, "{}", files.len());
}

#[test]
fn what_is_larger_than_that_is_made_to_fit() {
    let dir = in_memory();
    let mut keep = Keep::open(dir.path(), "boot", NOW).unwrap().keep;
    let mut random = Random(2);
    for program in 0..200u64 {
        // larger than the bound of a set
        let long = |n: u64| {
            touched(format!("/{program}/{}/{n}", "d".repeat(2000)), program * 1000 + n, &mut Random(n))
        };
        let launch = launch(program, FileSet { files: (0..240).map(long).collect() });
        keep.learned(&launch, &launch.set, NOW).unwrap();
        assert!(bytes(dir.path()) < MOST_BYTES, "{program}: {}", bytes(dir.path()));
    }
    learn(&mut keep, 1000, &mut random);
    let records = keep.records(NOW).unwrap();
    assert!((10..200).contains(&records.len()), "{}", records.len());
    assert!(records.iter().any(|r| r.program == Program::of_exe("/usr/bin/program-1000")));
    drop(keep);
    assert!(Keep::existing(dir.path(), Access::Read).is_ok());
}
