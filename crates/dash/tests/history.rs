//! The history's file: a month of it, broken ones, foreign ones, two at once.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "test code")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use eke_dash::Error;
use eke_dash::history::file::{self, HistoryFile, MOST_BYTES};
use eke_dash::history::series::SERIES;
use eke_dash::history::{History, SPANS};
use eke_dash::recorder::{Moment, Recorder, SAVE_EVERY_S};
use eke_dash::view::{Caches, View};
use eke_model::model::Model;
use eke_model::sample::{Memory, Pressure};
use eke_model::snapshot::{Machine, PrefetchState, Snapshot};
use eke_model::units::Bytes;
use rusqlite::Connection;

const START_S: u64 = 1_700_000_000;
const DAY_S: u64 = 86_400;
const HOUR: usize = 1;
const DAY: usize = 2;

/// All series, with numbers of the largest size in the file.
fn view(free: u64) -> View {
    let odd = |n: u64| free.wrapping_mul(n) % (1 << 39) + n;
    let share = free as f64 % 97.0 / 97.0 + 1e-9;
    let memory = Memory {
        total: Bytes(1 << 42),
        free: Bytes(free),
        anonymous: Bytes(odd(7919)),
        shared: Bytes(odd(104_729)),
        file_cache: Bytes(odd(1_299_709)),
        ..Memory::default()
    };
    let pressure = Some(Pressure { some_avg10: share, full_avg10: share / 3.0, ..Pressure::default() });
    let machine = Machine {
        memory,
        memory_pressure: pressure,
        io_pressure: pressure,
        cpu_pressure: pressure,
        ..Machine::default()
    };
    let model = Model {
        pool: Bytes(odd(15_485_863)),
        held: Bytes(odd(32_452_843)),
        pages_in_per_s: share,
        pages_out_per_s: share / 7.0,
        major_faults_per_s: share / 9.0,
        kswapd_cpu_share: share / 11.0,
        ..Model::default()
    };
    let prefetch = PrefetchState {
        launches: free / 3,
        predicted: free / 7,
        ahead: Bytes(free * 999),
        used: Bytes(free * 333),
        at_exec: Bytes(free * 111),
        ..PrefetchState::default()
    };
    let caches =
        Caches { from_store: Bytes(free * 9_973), from_backing: Bytes(free * 997), ..Caches::default() };
    let snapshot = Snapshot { machine, model, prefetch: Some(prefetch), ..Snapshot::default() };
    View { snapshot, caches: Some(caches), ..View::default() }
}

fn moment(after_s: u64) -> Moment {
    Moment { unix_s: START_S + after_s, monotonic_ms: after_s * 1_000 }
}

fn free(history: &History, span: usize) -> Vec<(u64, f64)> {
    history.after(span, 0).map(|p| (p.at_s, p.values[5].unwrap())).collect()
}

fn rows(path: &Path) -> u64 {
    Connection::open(path).unwrap().query_row("SELECT count(*) FROM point", (), |r| r.get(0)).unwrap()
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

fn begin(path: &Path) -> Recorder {
    let opened = file::open(path, START_S).unwrap();
    assert!(opened.set_aside.is_none(), "{:?}", opened.set_aside);
    Recorder::new(opened.history, Some(opened.file))
}

/// A reading every five seconds, as without an open page.
#[test]
fn a_month_takes_no_more_than_a_day() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state/eke/history.db");
    let mut recorder = begin(&path);
    let mut after_days = Vec::new();
    for after_s in (0..=30 * DAY_S).step_by(5) {
        recorder.note(moment(after_s), &view(after_s));
        if after_s % DAY_S == 0 {
            after_days.push(length(&path));
        }
    }
    assert!(recorder.trouble().is_none(), "{:?}", recorder.trouble());
    let most: u64 =
        SPANS.iter().filter(|s| s.kept).map(|s| s.keep_s / s.step_s + 1 + SAVE_EVERY_S / s.step_s).sum();
    assert!((1000..=most).contains(&rows(&path)), "{} rows", rows(&path));
    println!("a month: {} bytes, {} rows", after_days[30], rows(&path));
    assert_eq!(after_days[2], after_days[30], "it grows: {after_days:?}");
    assert!(after_days[30] < MOST_BYTES / 2, "{} bytes", after_days[30]);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    drop(recorder);
    let history = file::open(&path, START_S + 30 * DAY_S).unwrap().history;
    let day = free(&history, DAY);
    assert!((700..=720).contains(&day.len()), "{}", day.len());
    // the mean of 24 readings, five seconds apart
    assert!(
        day.iter().all(|(at_s, free)| *free == (at_s - START_S) as f64 + 57.5 || *at_s == START_S),
        "{day:?}"
    );
}

#[test]
fn every_column_is_in_the_document() {
    let document = include_str!("../../../docs/history.md");
    for series in SERIES {
        assert!(document.contains(&format!("`{}`", series.key)), "docs/history.md lacks {}", series.key);
    }
}

#[test]
fn a_restart_keeps_what_was_written_and_drops_what_is_old() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    let mut recorder = begin(&path);
    for after_s in 0..100 {
        recorder.note(moment(after_s), &view(7));
    }
    recorder.save(moment(100));
    drop(recorder);
    let soon = file::open(&path, START_S + 200).unwrap();
    assert_eq!(free(&soon.history, HOUR).len(), 19, "the twentieth step was not over");
    drop(soon);
    let later = file::open(&path, START_S + 100 + 3_600).unwrap();
    assert_eq!(free(&later.history, HOUR).len(), 0);
}

#[test]
fn a_clock_that_was_set_back_leaves_nothing_of_the_future() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    let mut recorder = begin(&path);
    for after_s in 5_000..5_300 {
        recorder.note(moment(after_s), &view(1));
    }
    recorder.save(moment(5_300));
    for after_s in 1_000..1_300 {
        let now = Moment { unix_s: START_S + after_s, monotonic_ms: (after_s + 5_000) * 1_000 };
        recorder.note(now, &view(2));
    }
    recorder.save(moment(1_300));
    drop(recorder);
    let history = file::open(&path, START_S + 9_000).unwrap().history;
    assert!(free(&history, DAY).iter().all(|(at_s, free)| *free == 2.0 && *at_s < START_S + 1_300));
}

fn set_aside(content: impl FnOnce(&Path), why: &str) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    content(&path);
    let before = std::fs::read(&path).unwrap();
    let opened = file::open(&path, START_S).unwrap();
    let aside = opened.set_aside.unwrap_or_else(|| panic!("not set aside: {why}"));
    assert!(aside.to_string().contains(why), "{aside}");
    assert_eq!(std::fs::read(&aside.now).unwrap(), before, "it is as it was");
    assert_eq!(aside.now, dir.path().join("history.db.broken-1"));
    drop(opened.file);
    assert!(file::open(&path, START_S).unwrap().set_aside.is_none());
}

#[test]
fn what_is_no_history_is_set_aside_and_reported() {
    let sql =
        |sql: &'static str| move |path: &Path| Connection::open(path).unwrap().execute_batch(sql).unwrap();
    set_aside(|path| std::fs::write(path, "my thesis").unwrap(), "not an SQLite file");
    set_aside(sql("CREATE TABLE bookmark (url TEXT)"), "of another program");
    set_aside(
        sql("PRAGMA application_id = 1701537128; PRAGMA user_version = 1; CREATE TABLE point (a)"),
        "not that of a history",
    );
    set_aside(
        sql("PRAGMA application_id = 1701537128; PRAGMA user_version = 1; CREATE VIEW point AS SELECT 1"),
        "not that of a history",
    );
}

#[test]
fn a_damaged_history_is_set_aside() {
    set_aside(
        |path| {
            let mut recorder = begin(path);
            for after_s in 0..3_000 {
                recorder.note(moment(after_s), &view(after_s));
            }
            recorder.save(moment(3_000));
            drop(recorder);
            let mut bytes = std::fs::read(path).unwrap();
            let all = bytes.len();
            bytes[4_096..all].fill(0xa5);
            std::fs::write(path, bytes).unwrap();
        },
        "cannot be used",
    );
}

#[test]
fn the_ninth_broken_one_is_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    for n in 1..=9 {
        std::fs::write(&path, "no history").unwrap();
        assert_eq!(
            file::open(&path, START_S).unwrap().set_aside.unwrap().now,
            dir.path().join(format!("history.db.broken-{n}"))
        );
    }
    std::fs::write(&path, "no history").unwrap();
    let refused = file::open(&path, START_S).unwrap_err().to_string();
    assert!(refused.contains("remove some"), "{refused}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "no history");
}

#[test]
fn a_newer_one_and_one_in_use_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    let first: HistoryFile = file::open(&path, START_S).unwrap().file;
    assert!(matches!(file::open(&path, START_S), Err(Error::Taken(_))));
    drop(first);
    Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 9").unwrap();
    let refused = file::open(&path, START_S).unwrap_err();
    assert!(matches!(refused, Error::Newer { version: 9, .. }), "{refused}");
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
    assert!(matches!(file::open(&path, START_S), Err(Error::File { .. })));
}

#[test]
fn a_column_that_an_older_eke_did_not_have_is_added() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.db");
    drop(begin(&path));
    Connection::open(&path).unwrap().execute_batch("ALTER TABLE point DROP COLUMN used").unwrap();
    let mut recorder = begin(&path);
    for after_s in 0..60 {
        recorder.note(moment(after_s), &view(1));
    }
    recorder.save(moment(60));
    assert_eq!(recorder.trouble(), None);
    assert_eq!(rows(&path), 12, "eleven of the hour, one of the day");
}
