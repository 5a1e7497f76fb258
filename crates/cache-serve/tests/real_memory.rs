//! What is remembered of files is within the memory that was asked for, and is told.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "test code")]

mod model;

use std::fs;
use std::os::unix::fs::DirEntryExt;
use std::path::Path;

use eke_cache_mounts::settings::Memory;
use eke_cache_mounts::status::{Request, Response, WorkerStats};
use eke_cache_mounts::{Dirs, ask, mounts};
use eke_model::units::{Bytes, MIB};
use eke_testkit::real::{lacking, skip};
use eke_testkit::wait::wait_for;
use model::LONG;
use model::mount::{Mount, NEEDS};

const DIRS: u64 = 20;
const FILES: u64 = 1000;
const ASKED: Bytes = Bytes::mib(64);

/// Empty files, with names as they are.
fn make(backing: &Path) {
    for dir in 0..DIRS {
        let dir = backing.join(format!("directory-{dir}"));
        fs::create_dir(&dir).unwrap();
        (0..FILES).for_each(|n| drop(fs::File::create(dir.join(format!("document-{n:06}.html"))).unwrap()));
    }
}

/// As `find` and `ls -lR` do.
fn look_at_all(place: &Path) -> u64 {
    let mut seen = 0;
    for dir in fs::read_dir(place).unwrap() {
        for file in fs::read_dir(dir.unwrap().path()).unwrap() {
            let file = file.unwrap();
            assert!(file.metadata().unwrap().is_file() && file.ino() > 0);
            seen += 1;
        }
    }
    seen
}

/// What the worker says, and what the kernel says of its anonymous memory.
fn look(mount: &Mount) -> (WorkerStats, Bytes) {
    let all = mounts::read().unwrap();
    let shown = mounts::at(&all, mount.place()).unwrap();
    let answer = ask(&Dirs::host(), shown, Request::Status, LONG).unwrap();
    let Some(Response::Status(status)) = answer else { panic!("{answer:?}") };
    let pid = status.worker_pid.unwrap();
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    (status.worker.unwrap(), Bytes(kib << 10))
}

#[test]
fn what_is_known_of_files_is_told_and_within_the_memory_asked_for() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("what_is_known_of_files_is_told_and_within_the_memory_asked_for", &why);
    }
    let mount = Mount::with(|settings| settings.memory = Memory::Bytes(ASKED));
    make(mount.backing());
    let (before, rss_before) = look(&mount);
    assert_eq!(look_at_all(mount.place()), DIRS * FILES);
    let (after, rss_after) = look(&mount);
    let known = after.files.known - before.files.known;
    assert!(known > DIRS * FILES / 2, "the kernel has forgotten most of {known} files already");
    let told = after.files.tables.0 - before.files.tables.0;
    let grown = rss_after.0.saturating_sub(rss_before.0);
    eprintln!("{known} files: {grown} bytes more, told {told}; {:?}", after.files);
    assert!(told.abs_diff(grown) < grown / 4 + 2 * MIB, "{told} told, {grown} more of anonymous memory");
    let mut sum = Bytes(0);
    wait_for("the store leaves room", || {
        let stats = look(&mount).0;
        sum = Bytes(stats.store.limit.0 + stats.files.memory.0);
        sum <= ASKED
    });
}
