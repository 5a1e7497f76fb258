//! A full disk and a read-only one, as tmpfs mounts.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "a failing test panics")]

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use eke_prefetch_model::{FileSet, Kind, Launch, LaunchEnd, Pages, Program, Stamp, Touched, UsedBy};
use eke_prefetch_store::{Access, Error, Fallback, ProgramStore};
use eke_testkit::real::{lock_machine, skip};

const NOW: i64 = 1_800_000_000;

/// A tmpfs on a directory; Drop unmounts it.
struct Mounted(tempfile::TempDir);

impl Mounted {
    /// The error is mount's message.
    fn new(options: &str) -> Result<Self, String> {
        let dir = tempfile::tempdir().unwrap();
        mount(&["-t", "tmpfs", "-o", options, "eke-test"], dir.path())?;
        Ok(Self(dir))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

fn mount(args: &[&str], dir: &Path) -> Result<(), String> {
    let ran = Command::new("mount").args(args).arg(dir).output().map_err(|e| format!("no mount: {e}"))?;
    let why = || String::from_utf8_lossy(&ran.stderr).into_owned();
    if ran.status.success() { Ok(()) } else { Err(why()) }
}

fn launch(number: u64) -> Launch {
    let file = |n: u64| Touched {
        path: format!("/{number}/{n}/{}", "x".repeat(400)).into(),
        kind: Kind::File,
        stamp: Stamp { ino: n, ..Stamp::default() },
        pages: Pages::default(),
        stale: Pages::default(),
        weight: 1.0,
        used_by: UsedBy::Unknown,
    };
    Launch {
        program: Program::of_exe(format!("/bin/{number}")),
        uid: 0,
        began_ns: 0,
        took: Duration::from_secs(1),
        ended: LaunchEnd::Quiet,
        set: FileSet { files: (0..100).map(file).collect() },
        cold_bytes: 0,
    }
}

fn learn(store: &mut ProgramStore, number: u64) -> Result<(), Error> {
    let launch = launch(number);
    store.add_launch(&launch, &launch.set, NOW).map(|_| ())
}

/// Fills the disk to its last block; removing the file makes room again.
fn fill(disk: &Path) -> PathBuf {
    let path = disk.join("fill");
    let mut file = File::create(&path).unwrap();
    while file.write(&[0; 4096]).is_ok() {}
    path
}

fn programs(store: &ProgramStore) -> usize {
    store.records(NOW).unwrap().len()
}

/// What a killed process leaves in `to`: the file and the log, and with `index` the log's index.
fn killed(to: &Path, index: bool) {
    let dir = tempfile::tempdir().unwrap();
    let mut store = ProgramStore::open(dir.path(), "boot", NOW).unwrap().store;
    learn(&mut store, 1).unwrap();
    std::fs::create_dir_all(to).unwrap();
    for ending in ["", "-wal", "-shm"].iter().take(if index { 3 } else { 2 }) {
        let name = format!("prefetch.db{ending}");
        std::fs::copy(dir.path().join(&name), to.join(&name)).unwrap();
    }
    assert!(to.join("prefetch.db-wal").metadata().unwrap().len() > 0);
}

#[test]
fn without_any_room_a_store_is_read_with_what_is_in_its_log() {
    let _machine = lock_machine();
    let disk = match Mounted::new("size=4M,mode=700") {
        Ok(disk) => disk,
        Err(why) => return skip("read_without_room", &why),
    };
    let (log, none) = (disk.path().join("log"), disk.path().join("none"));
    killed(&log, false);
    drop(ProgramStore::open(&none, "boot", NOW).unwrap());
    fill(disk.path());
    let full = ProgramStore::open(&log, "boot", NOW).unwrap_err();
    assert!(matches!(full, Error::Full(_)), "{full}");
    assert_eq!(programs(&ProgramStore::existing(&log, Access::Read).unwrap()), 1);
    assert_eq!(programs(&ProgramStore::existing(&none, Access::Read).unwrap()), 0);
    let failed = ProgramStore::existing(&none, Access::Write).unwrap_err();
    assert!(matches!(failed, Error::Full(_)), "{failed}");
}

#[test]
fn on_a_read_only_disk_a_store_is_read_with_what_is_in_its_log() {
    let _machine = lock_machine();
    let disk = match Mounted::new("size=4M,mode=700") {
        Ok(disk) => disk,
        Err(why) => return skip("read_only_log", &why),
    };
    killed(disk.path(), true);
    mount(&["-o", "remount,ro"], disk.path()).unwrap();
    assert_eq!(programs(&ProgramStore::existing(disk.path(), Access::Read).unwrap()), 1);
    let run = tempfile::tempdir().unwrap();
    let fallback = Fallback::new(disk.path(), run.path());
    let copy = fallback.open_copy("boot", NOW).unwrap();
    assert!(copy.not_copied.is_none() && programs(&copy.opened.store) == 1, "{:?}", copy.not_copied);
}

#[test]
fn a_full_disks_store_goes_on_in_a_copy_and_comes_back_with_what_that_learned() {
    let _machine = lock_machine();
    let disk = match Mounted::new("size=6M,mode=700") {
        Ok(disk) => disk,
        Err(why) => return skip("copy_of_a_store", &why),
    };
    let run = tempfile::tempdir().unwrap();
    let fallback = Fallback::new(disk.path(), run.path());
    learn(&mut fallback.open("boot", NOW).unwrap().store, 1).unwrap();
    let full = fill(disk.path());
    let failed = fallback.open("boot 2", NOW).unwrap_err();
    assert!(matches!(failed, Error::Full(_)), "{failed}");
    assert_eq!(fallback.in_use(), disk.path());
    let copy = fallback.open_copy("boot 2", NOW).unwrap();
    let mode = copy.opened.store.path().metadata().unwrap().permissions().mode();
    assert!(copy.not_copied.is_none() && mode & 0o777 == 0o600, "{mode:o} {:?}", copy.not_copied);
    let mut store = copy.opened.store;
    assert_eq!(programs(&store), 1);
    learn(&mut store, 2).unwrap();
    assert!(!fallback.has_room(&store));
    assert!(fallback.move_back(&mut store, "boot 2", NOW).is_err(), "it is full still");
    drop(store);
    assert!(fallback.in_use().starts_with(run.path()));
    // The next process has what this one learned.
    assert!(fallback.open("boot 2", NOW).is_err());
    let mut store = fallback.open_copy("boot 2", NOW).unwrap().opened.store;
    assert_eq!(programs(&store), 2);
    std::fs::remove_file(full).unwrap();
    assert!(fallback.has_room(&store));
    let back = fallback.move_back(&mut store, "boot 2", NOW).unwrap().store;
    assert_eq!(programs(&back), 2);
    let known = back.program(launch(2).program.id(), NOW).unwrap().unwrap();
    assert_eq!(known.set.files.len(), 100);
    drop(store);
    fallback.remove_copy();
    assert_eq!(fallback.in_use(), disk.path());
    assert_eq!(back.path(), disk.path().join("prefetch.db"));
}

#[test]
fn a_copy_of_a_store_that_was_changed_since_is_not_used() {
    let _machine = lock_machine();
    let disk = match Mounted::new("size=6M,mode=700") {
        Ok(disk) => disk,
        Err(why) => return skip("copy_of_a_changed_store", &why),
    };
    let run = tempfile::tempdir().unwrap();
    let fallback = Fallback::new(disk.path(), run.path());
    learn(&mut fallback.open("boot", NOW).unwrap().store, 1).unwrap();
    let full = fill(disk.path());
    learn(&mut fallback.open_copy("boot", NOW).unwrap().opened.store, 2).unwrap();
    std::fs::remove_file(full).unwrap();
    let mut store = ProgramStore::existing(disk.path(), Access::Write).unwrap();
    learn(&mut store, 3).unwrap();
    drop(store);
    assert_eq!(fallback.in_use(), disk.path());
    let full = fill(disk.path());
    assert_eq!(programs(&fallback.open_copy("boot", NOW).unwrap().opened.store), 2, "1 and 3");
    learn(&mut fallback.open_copy("boot", NOW).unwrap().opened.store, 4).unwrap();
    std::fs::remove_file(full).unwrap();
    assert_eq!(programs(&fallback.open("boot", NOW).unwrap().store), 3, "1, 3 and 4");
}

#[test]
fn a_full_disk_is_reported_and_the_store_stays() {
    let _machine = lock_machine();
    let disk = match Mounted::new("size=1M,mode=700") {
        Ok(disk) => disk,
        Err(why) => return skip("full_disk", &why),
    };
    let mut store = ProgramStore::open(disk.path(), "boot", NOW).unwrap().store;
    let mut number = 0;
    let failed = loop {
        match learn(&mut store, number) {
            Ok(()) => number += 1,
            Err(e) => break e,
        }
        assert!(number < 1000, "it was never full");
    };
    assert!(matches!(failed, Error::Full(_)), "{failed}");
    assert!(failed.to_string().contains("prefetch.db: the disk or the file is full"), "{failed}");
    assert!(number > 2);
    assert_eq!(store.records(NOW).unwrap().len() as u64, number);
    drop(store);
    // a full store opens and is complete
    let store = ProgramStore::existing(disk.path(), Access::Read).unwrap();
    assert_eq!(store.records(NOW).unwrap().len() as u64, number);
    drop(store);
    // learning continues when there is space again
    mount(&["-o", "remount,size=8M"], disk.path()).unwrap();
    let opened = ProgramStore::open(disk.path(), "boot", NOW).unwrap();
    assert_eq!(opened.set_aside, None);
    let mut store = opened.store;
    learn(&mut store, number).unwrap();
    assert_eq!(store.records(NOW).unwrap().len() as u64, number + 1);
}

#[test]
fn a_disk_without_any_room_leaves_nothing_half_made() {
    let _machine = lock_machine();
    let disk = match Mounted::new("size=16k,mode=700") {
        Ok(disk) => disk,
        Err(why) => return skip("no_room", &why),
    };
    let failed = ProgramStore::open(disk.path(), "boot", NOW).unwrap_err();
    assert!(matches!(failed, Error::Full(_)), "{failed}");
    assert_eq!(std::fs::read_dir(disk.path()).unwrap().count(), 0);
}

#[test]
fn a_read_only_disk_is_reported() {
    let _machine = lock_machine();
    let disk = match Mounted::new("size=1M,mode=700") {
        Ok(disk) => disk,
        Err(why) => return skip("read_only", &why),
    };
    let kept = disk.path().join("kept");
    // SQLite's own signs in a path
    let odd = disk.path().join("a?b#c%20");
    drop(ProgramStore::open(&odd, "boot", NOW).unwrap());
    let mut store = ProgramStore::open(&kept, "boot", NOW).unwrap().store;
    learn(&mut store, 1).unwrap();
    drop(store);
    mount(&["-o", "remount,ro"], disk.path()).unwrap();
    for dir in [disk.path().join("new"), kept] {
        let failed = ProgramStore::open(&dir, "boot", NOW).unwrap_err();
        assert!(matches!(failed, Error::ReadOnly(_)), "{failed}");
        assert!(failed.to_string().contains("read-only"), "{failed}");
    }
    // It can be read.
    assert_eq!(ProgramStore::existing(&odd, Access::Read).unwrap().records(NOW).unwrap(), []);
    let kept = disk.path().join("kept");
    let store = ProgramStore::existing(&kept, Access::Read).unwrap();
    let records = store.records(NOW).unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(store.program(records[0].id(), NOW).unwrap().unwrap().set.files.len(), 100);
    drop(store);
    let failed = ProgramStore::existing(&kept, Access::Write).unwrap_err();
    assert!(matches!(failed, Error::ReadOnly(_)), "{failed}");
}
