//! A full disk and a read-only one, as tmpfs mounts.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test panics")]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use eke_prefetch_model::{FileSet, Kind, Launch, LaunchEnd, Pages, Program, Stamp, Touched};
use eke_prefetch_store::{Access, Error, ProgramStore};
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
