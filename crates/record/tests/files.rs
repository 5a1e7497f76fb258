//! Recordings as files: written, read, half written, and anything else.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use eke_linux::Root;
use eke_record::Error;
use eke_record::load::Recording;
use eke_record::marks::Inbox;
use eke_record::recording::{Spec, record};
use eke_record::row::{Mark, Row};
use eke_record::store::Store;
use eke_record::subject::Subject;
use eke_record::{csv, html};
use eke_testkit::tree::in_memory;
use eke_testkit::tree::put;
use proptest::prelude::{any, prop_assert, proptest};

fn rows(count: u64) -> Vec<Row> {
    (0..count).map(|i| Row { time_ms: i * 100, free_bytes: Some(i), ..Row::default() }).collect()
}

fn recorded(path: &Path, count: u64) -> Store {
    let mut store = Store::create(path, false).unwrap();
    store.note(&[("subject", "x".into()), ("every_ms", "100".into())]).unwrap();
    store.write(&rows(count), &[Mark { time_ms: 150, name: "a \"b\"".into() }]).unwrap();
    store
}

fn write(path: &Path, bytes: &[u8]) {
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).open(path).unwrap();
    std::io::Write::write_all(&mut file, bytes).unwrap();
}

#[test]
fn what_was_written_is_read_also_while_it_is_written() {
    let dir = in_memory();
    let path = dir.path().join("a.sqlite");
    let mut store = recorded(&path, 3);
    let read = Recording::read(&path).unwrap();
    assert_eq!((read.rows.as_slice(), read.marks[0].name.as_str()), (rows(3).as_slice(), "a \"b\""));
    assert!(!read.is_complete());
    let more = [Row { time_ms: 900, pages_in: Some(u64::MAX), ..Row::default() }];
    store.write(&more, &[]).unwrap();
    store.note(&[("ended_after_ms", "900".into())]).unwrap();
    let read = Recording::read(&path).unwrap();
    assert_eq!((read.rows.len(), read.is_complete()), (4, true));
    assert_eq!(read.rows[3].pages_in, Some(i64::MAX as u64));
}

#[test]
fn a_recorder_killed_amid_a_transaction_leaves_the_ones_before() {
    let dir = in_memory();
    let (path, killed) = (dir.path().join("a.sqlite"), dir.path().join("b.sqlite"));
    drop(recorded(&path, 500));
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute_batch("PRAGMA cache_size = 1; BEGIN; UPDATE sample SET free_bytes = 7; DELETE FROM mark;")
        .unwrap();
    let beside = |path: &Path| PathBuf::from(format!("{}-journal", path.display()));
    std::fs::copy(&path, &killed).unwrap();
    std::fs::copy(beside(&path), beside(&killed)).unwrap();
    assert_ne!(std::fs::read(&killed).unwrap(), Vec::<u8>::new());
    let read = Recording::read(&killed).unwrap();
    assert_eq!((read.rows, read.marks.len()), (rows(500), 1));
    // an old journal is not rolled back into a new recording
    std::fs::copy(beside(&path), beside(&killed)).unwrap();
    let store = Store::create(&killed, true).unwrap();
    assert!(!beside(&killed).exists());
    drop(store);
    assert!(matches!(Recording::read(&killed), Err(Error::Empty(_))));
}

#[test]
fn tables_that_are_views_or_of_another_shape_are_damage() {
    let dir = in_memory();
    for (i, (sql, part)) in [
        ("DROP TABLE mark", "a table is missing"),
        ("DROP TABLE sample; CREATE VIEW sample AS WITH RECURSIVE n(time_ms) AS (SELECT 1 UNION ALL SELECT time_ms FROM n) SELECT * FROM n", "a table is missing"),
        ("DROP TABLE mark; CREATE TABLE mark (time_ms INTEGER, name AS (printf('%.*c', 400000000, 'x')))", "a table is missing"),
        ("ALTER TABLE sample DROP COLUMN pool_bytes", "no such column"),
        ("UPDATE sample SET free_bytes = 'much'", "Invalid column type"),
        ("UPDATE sample SET time_ms = -5", "out of range"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = dir.path().join(format!("{i}.sqlite"));
        drop(recorded(&path, 3));
        rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let error = Recording::read(&path).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }) && error.to_string().contains(part), "{sql}: {error}");
    }
}

/// Each page of the tree of samples that is no leaf names the same page below it in all places, so that rows have no end.
#[test]
fn pages_that_are_in_a_tree_twice_are_damage() {
    let dir = in_memory();
    let path = dir.path().join("a.sqlite");
    drop(recorded(&path, 2000));
    let mut bytes = std::fs::read(&path).unwrap();
    let mut changed = 0;
    for page in bytes.chunks_exact_mut(4096).skip(1).filter(|page| page[0] == 5) {
        let cells = usize::from(u16::from_be_bytes([page[3], page[4]]));
        let at =
            |page: &[u8], n: usize| usize::from(u16::from_be_bytes([page[12 + 2 * n], page[13 + 2 * n]]));
        let first = at(page, 0);
        let child: [u8; 4] = page[first..first + 4].try_into().unwrap();
        for n in 1..cells {
            let cell = at(page, n);
            page[cell..cell + 4].copy_from_slice(&child);
            changed += 1;
        }
    }
    assert!(changed > 3, "the recording has too few pages");
    write(&path, &bytes);
    let error = Recording::read(&path).unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
}

#[test]
fn a_directory_without_most_files_of_proc_can_be_recorded() {
    let dir = in_memory();
    put(dir.path(), "root/proc/meminfo", "MemTotal: 126976 kB\nMemFree: 1000 kB\n");
    put(dir.path(), "root/proc/vmstat", "pswpin 5\n");
    let spec = Spec {
        subject: Subject::System,
        every: Duration::from_millis(10),
        at_most: Some(Duration::from_millis(60)),
        output: dir.path().join("a.sqlite"),
        overwrite: false,
    };
    let inbox = Inbox::bind(&[dir.path().join("sockets")]).unwrap();
    let root = Root::at(dir.path().join("root"));
    let ended = record(&root, &spec, Some(inbox), &AtomicBool::new(false)).unwrap();
    let read = Recording::read(&ended.file).unwrap();
    assert_eq!(read.rows.len() as u64, ended.samples);
    assert!(read.rows.len() >= 2);
    let last = read.rows.last().unwrap();
    assert_eq!((last.free_bytes, last.pages_in, last.memory_some_us), (Some(1_024_000), Some(0), None));
    assert_eq!(read.note("ram_bytes"), "130023424");
    assert_eq!(std::fs::read_dir(dir.path().join("sockets")).unwrap().count(), 0);
}

fn whole() -> Vec<u8> {
    let dir = in_memory();
    let path = dir.path().join("a.sqlite");
    drop(recorded(&path, 200));
    std::fs::read(path).unwrap()
}

/// Any file is a recording that can be shown, or an error.
fn read_and_show(bytes: &[u8]) -> bool {
    let dir = in_memory();
    let path = dir.path().join("any.sqlite");
    write(&path, bytes);
    match Recording::read(&path) {
        Ok(recording) => {
            html::page(&recording).contains("</html>") && csv::csv(&recording).lines().count() > 1
        }
        Err(error) => !error.to_string().is_empty(),
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_recording_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..600), with_header in any::<bool>()) {
        let mut bytes = bytes;
        if with_header {
            bytes.splice(0..bytes.len().min(100), whole()[..100].iter().copied());
        }
        prop_assert!(read_and_show(&bytes));
    }

    #[test]
    fn a_damaged_recording_is_read_or_refused(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..40),
        cut in proptest::option::of(any::<proptest::sample::Index>()),
    ) {
        let mut bytes = whole();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        prop_assert!(read_and_show(&bytes));
    }
}
