//! Its file: rights, other versions, damage.

use std::io::{Seek, Write};
use std::os::unix::fs::PermissionsExt;

use eke_testkit::tree::put;
use rusqlite::Connection;

use super::*;

#[test]
fn it_is_for_its_owner_alone() {
    let dir = in_memory();
    let below = dir.path().join("a/eke");
    let store = open(&below).store;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&below), 0o700);
    assert_eq!(mode(store.path()), 0o600);
    assert_eq!(mode(&below.join("prefetch.db-wal")), 0o600);
    drop(store);
    std::fs::set_permissions(below.join(NAME), PermissionsExt::from_mode(0o644)).unwrap();
    assert_eq!(mode(open(&below).store.path()), 0o600);
}

/// A closed store with a program.
fn filled() -> (TempDir, PathBuf) {
    let (dir, mut store) = store();
    learn(&mut store, "/bin/a", (0..200).map(|n| file(format!("/usr/share/{n}"), n)).collect());
    let path = store.path().to_owned();
    (dir, path)
}

#[test]
fn a_broken_file_is_set_aside_and_reported() {
    type Break = fn(&Path);
    let breakages: [(&str, Break); 9] = [
        ("its schema is 1", |path| sql(path, "PRAGMA user_version = 1")),
        ("cut short", |path| cut(path, 5000)),
        ("not an SQLite file", |path| cut(path, 0)),
        ("not an SQLite file", |path| cut(path, 99)),
        ("not an SQLite file", |path| overwrite(path, 0, "hello".repeat(1000).as_bytes())),
        ("not a regular file", |path| {
            std::fs::remove_file(path).unwrap();
            std::os::unix::fs::symlink("/etc/passwd", path).unwrap();
        }),
        ("of another program", |path| sql(path, "PRAGMA application_id = 7")),
        ("tables are not those", |path| sql(path, "DROP TABLE touched; CREATE VIEW touched AS SELECT 1")),
        ("", |path| overwrite(path, 4096, &[0xff; 3 * 4096])),
    ];
    for (what, break_it) in breakages {
        let (dir, path) = filled();
        break_it(&path);
        let read = ProgramStore::existing(dir.path(), Access::Read).and_then(|store| store.records(NOW));
        assert!(matches!(read, Err(Error::Damaged { .. })), "{what}: {read:?}");
        let opened = open(dir.path());
        let set_aside = opened.set_aside.unwrap_or_else(|| panic!("{what}: nothing was set aside"));
        assert!(set_aside.why.contains(what), "{what}: {set_aside}");
        assert_eq!(set_aside.now, dir.path().join("prefetch.db.broken-2027-01-15"));
        assert!(std::fs::symlink_metadata(&set_aside.now).is_ok());
        let mut store = opened.store;
        assert_eq!(store.records(NOW).unwrap(), []);
        learn(&mut store, "/bin/b", vec![file("/x", 1)]);
        assert_eq!(set_of(&store, "/bin/b").unwrap().files, [file("/x", 1)]);
    }
    assert!(std::fs::metadata("/etc/passwd").is_ok());
}

/// The SQL that takes the accounts out of a store again, or also the users.
const WITHOUT_ACCOUNTS: &str = "DROP TABLE account; PRAGMA user_version = 3";

fn without_users() -> String {
    let columns = "key, id, exe, script, launches, learned, last_seen_s, took_ms, cold_bytes, coldest_ms, \
                   coldest_bytes, weight, weight_s";
    format!(
        "DROP TABLE account; ALTER TABLE program RENAME TO later; {}; INSERT INTO program ({columns}) SELECT {columns} FROM later; \
         DROP TABLE later; PRAGMA user_version = 2",
        schema::PROGRAM_WITHOUT_USER
    )
}

#[test]
fn the_store_of_an_earlier_eke_is_kept() {
    let (dir, path) = filled();
    let before = ProgramStore::existing(dir.path(), Access::Read).unwrap().records(NOW).unwrap();
    for earlier in [without_users(), WITHOUT_ACCOUNTS.to_owned()] {
        sql(&path, &earlier);
        let read = ProgramStore::existing(dir.path(), Access::Read);
        assert!(read.is_err(), "{read:?}: a reader changes nothing");
        for _ in 0..2 {
            let opened = open(dir.path());
            assert_eq!(opened.set_aside, None);
            assert_eq!(opened.store.records(NOW).unwrap(), before);
            let known = opened.store.program(Program::of_exe("/bin/a").id(), NOW).unwrap().unwrap();
            assert_eq!((known.set.files.len(), known.users), (200, vec![]));
        }
    }
    sql(&path, &(without_users() + "; CREATE VIEW foreign_view AS SELECT 1"));
    assert!(open(dir.path()).set_aside.unwrap().why.contains("not those of its schema"));
}

#[test]
fn a_store_that_is_removed_while_it_is_open_takes_what_it_has_with_it() {
    let (dir, mut removed) = store();
    learn(&mut removed, "/bin/a", vec![file("/x", 1)]);
    for name in [NAME, "prefetch.db-wal", "prefetch.db-shm"] {
        std::fs::remove_file(dir.path().join(name)).unwrap();
    }
    learn(&mut removed, "/bin/b", vec![file("/y", 2)]);
    assert_eq!(removed.records(NOW).unwrap().len(), 2, "it works until it is closed");
    let none = ProgramStore::existing(dir.path(), Access::Read).unwrap_err();
    assert!(matches!(none, Error::Nothing(_)), "{none}");
    drop(removed);
    assert_eq!(open(dir.path()).store.records(NOW).unwrap(), []);
}

#[test]
fn broken_files_do_not_fill_the_disk() {
    let dir = in_memory();
    for n in 0..6 {
        put(dir.path(), NAME, &n.to_string());
        assert!(open(dir.path()).set_aside.is_some());
    }
    let names: Vec<String> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.iter().filter(|n| n.contains("broken")).count(), 3, "{names:?}");
}

#[test]
fn later_damage_is_an_error_and_the_next_start_sets_the_store_aside() {
    let (dir, path) = filled();
    let mut store = ProgramStore::existing(dir.path(), Access::Write).unwrap();
    let size = std::fs::metadata(&path).unwrap().len();
    overwrite(&path, 4096, &vec![0xff; size as usize - 4096]);
    let next = launch("/bin/b", vec![file("/x", 1)]);
    let failed = store.add_launch(&next, &next.set, NOW).unwrap_err();
    assert!(matches!(failed, Error::Damaged { .. }), "{failed}");
    drop(store);
    assert!(open(dir.path()).set_aside.is_some());
}

#[test]
fn a_newer_store_is_left_alone_and_a_missing_one_is_reported() {
    let (dir, path) = filled();
    sql(&path, "PRAGMA user_version = 5");
    let before = std::fs::read(&path).unwrap();
    let refused = ProgramStore::open(dir.path(), "boot", NOW).unwrap_err();
    assert!(matches!(refused, Error::Newer { version: 5, .. }), "{refused}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let none = ProgramStore::existing(&dir.path().join("none"), Access::Read).unwrap_err();
    assert!(matches!(none, Error::Nothing(_)), "{none}");
    assert!(!dir.path().join("none").exists());
}

#[test]
fn one_reads_while_another_writes_and_notices_changes_of_the_other() {
    let (dir, mut daemon) = store();
    learn(&mut daemon, "/bin/a", vec![file("/x", 1)]);
    let reader = ProgramStore::existing(dir.path(), Access::Read).unwrap();
    let before = daemon.data_version().unwrap();
    learn(&mut daemon, "/bin/b", vec![file("/y", 2)]);
    assert_eq!(reader.records(NOW).unwrap().len(), 2);
    assert_eq!(daemon.data_version().unwrap(), before);
    let mut reader = reader;
    assert!(matches!(reader.forget_file(Path::new("/x")), Err(Error::ReadOnly(_))));
    let mut user = ProgramStore::existing(dir.path(), Access::Write).unwrap();
    assert!(user.forget_program(Program::of_exe("/bin/a").id()).unwrap());
    assert_ne!(daemon.data_version().unwrap(), before);
    assert_eq!(daemon.records(NOW).unwrap().len(), 1);
}

#[test]
fn a_partly_created_store_is_created_again() {
    let dir = in_memory();
    put(dir.path(), "prefetch.db.new", "half");
    put(dir.path(), "prefetch.db-wal", "of nobody");
    let opened = open(dir.path());
    assert_eq!(opened.set_aside, None);
    assert!(!dir.path().join("prefetch.db.new").exists());
}

fn cut(path: &Path, bytes: u64) {
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.seek(std::io::SeekFrom::Start(at)).unwrap();
    file.write_all(bytes).unwrap();
}

fn sql(path: &Path, sql: &str) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(sql).unwrap();
}
