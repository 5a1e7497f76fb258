//! A writer that is killed at any time leaves its last commit.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test panics")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use eke_prefetch_model::{FileSet, Kind, Launch, LaunchEnd, Pages, Program, Span, Stamp, Touched, UsedBy};
use eke_prefetch_store::ProgramStore;
use eke_testkit::tree::in_memory;
use rusqlite::Connection;

const NOW: i64 = 1_800_000_000;
const DIR: &str = "EKE_TEST_KEEP_DIR";

/// Launch `number` touches 100 files with `number` pages each, so that a partial write shows.
fn launch(number: u64) -> Launch {
    let file = |n: u64| Touched {
        path: format!("/usr/share/program/{n}").into(),
        kind: Kind::File,
        stamp: Stamp { dev: 1, ino: n + 1, size: 1 << 30, mtime_ns: 0 },
        pages: Span::new(0, number).into_iter().collect::<Pages>(),
        stale: Pages::default(),
        weight: 1.0,
        used_by: UsedBy::Unknown,
    };
    Launch {
        program: Program::of_exe("/usr/bin/program"),
        uid: 0,
        began_ns: 0,
        took: Duration::from_secs(1),
        ended: LaunchEnd::Quiet,
        set: FileSet { files: (0..100).map(file).collect() },
        cold_bytes: number,
    }
}

/// The number of the last launch, after checking that it is complete.
fn last(dir: &Path) -> u64 {
    let opened = ProgramStore::open(dir, "boot", NOW).unwrap();
    assert_eq!(opened.set_aside, None);
    let Some(known) = opened.store.program(Program::of_exe("/usr/bin/program").id(), NOW).unwrap() else {
        return 0;
    };
    let number = known.record.cold_bytes;
    assert_eq!(known.set, launch(number).set);
    assert_eq!(u64::from(known.record.learned), number);
    let path = opened.store.path().to_owned();
    drop(opened);
    let whole = Connection::open(path).unwrap();
    let whole: String = whole.query_row("PRAGMA integrity_check", (), |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");
    number
}

/// Runs in a child process: prints each launch's number when it is committed.
#[test]
fn writes_until_it_is_killed() {
    let Some(dir) = std::env::var_os(DIR).map(PathBuf::from) else { return };
    let mut number = last(&dir);
    let mut store = ProgramStore::open(&dir, "boot", NOW).unwrap().store;
    let mut out = std::io::stderr();
    loop {
        number += 1;
        let launch = launch(number);
        store.add_launch(&launch, &launch.set, NOW).unwrap();
        writeln!(out, "committed {number}").unwrap();
    }
}

fn writer(dir: &Path) -> Child {
    let mut writer = Command::new(std::env::current_exe().unwrap());
    writer.args(["--exact", "writes_until_it_is_killed", "--nocapture"]).env(DIR, dir);
    writer.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Kills the writer after this many commits, possibly during the next one.
fn kill_after(mut writer: Child, commits: u64, delay: Duration) -> u64 {
    let mut lines = BufReader::new(writer.stderr.take().unwrap()).lines().map_while(Result::ok);
    let committed: Vec<u64> = lines
        .by_ref()
        .filter_map(|line| line.strip_prefix("committed ")?.parse().ok())
        .take(commits as usize)
        .collect();
    std::thread::sleep(delay);
    writer.kill().unwrap();
    // it may have printed more before it died
    let later = lines.filter_map(|line| line.strip_prefix("committed ")?.parse().ok()).last();
    writer.wait().unwrap();
    later.or(committed.last().copied()).unwrap_or_else(|| panic!("it committed nothing"))
}

#[test]
fn a_writer_that_is_killed_leaves_what_it_committed() {
    let dir = in_memory();
    let mut before = 0;
    for round in 0..30u64 {
        let committed = kill_after(writer(dir.path()), 1 + round % 7, Duration::from_micros(137 * round));
        let found = last(dir.path());
        assert!(found > before && (found == committed || found == committed + 1), "{found} of {committed}");
        before = found;
    }
}
