//! The memory for files besides their blocks is within the requested size, and is reported.

use std::fs;
use std::os::unix::fs::DirEntryExt;
use std::path::Path;

use eke_cache_mounts::settings::Memory;
use eke_cache_mounts::status::{Request, Response, WorkerStats};
use eke_cache_mounts::{SocketDirs, ask, mounts};
use eke_model::units::{Bytes, MIB};
use eke_testkit::real::{lacking, skip};
use eke_testkit::wait::wait_for;

use crate::common::mount::Mount;
use crate::common::{LONG, NEEDS};

const DIRS: u64 = 20;
const FILES: u64 = 1000;
const REQUESTED: Bytes = Bytes::mib(64);

/// Makes empty files with names of usual length.
fn make(backing: &Path) {
    for dir in 0..DIRS {
        let dir = backing.join(format!("directory-{dir}"));
        fs::create_dir(&dir).unwrap();
        (0..FILES).for_each(|n| drop(fs::File::create(dir.join(format!("document-{n:06}.html"))).unwrap()));
    }
}

/// Lists all and reads their attributes, as `ls -lR` does. Returns the number of files.
fn list_all(place: &Path) -> u64 {
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

/// The worker's stats, and its anonymous memory.
pub fn stats(mount: &Mount) -> (WorkerStats, Bytes) {
    let all = mounts::read().unwrap();
    let shown = mounts::at(&all, mount.place()).unwrap();
    let answer = ask(&SocketDirs::host(), shown, Request::Status, LONG).unwrap();
    let Some(Response::Status(status)) = answer else { panic!("{answer:?}") };
    let pid = status.worker_pid.unwrap();
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    (status.worker.unwrap(), Bytes(kib << 10))
}

#[test]
fn memory_for_files_is_reported_and_within_the_requested_size() {
    if let Some(why) = lacking(&NEEDS) {
        return skip("memory_for_files_is_reported_and_within_the_requested_size", &why);
    }
    let mount = Mount::with(|settings| settings.memory = Memory::Bytes(REQUESTED));
    make(mount.backing());
    let (before, rss_before) = stats(&mount);
    assert_eq!(list_all(mount.place()), DIRS * FILES);
    let (after, rss_after) = stats(&mount);
    let known = after.files.known - before.files.known;
    assert!(known > DIRS * FILES / 2, "the kernel has forgotten most of {known} files already");
    let reported = after.files.tables.0 - before.files.tables.0;
    let grown = rss_after.0.saturating_sub(rss_before.0);
    eprintln!("{known} files: {grown} bytes more, {reported} reported; {:?}", after.files);
    assert!(reported.abs_diff(grown) < grown / 4 + 2 * MIB, "{reported} reported, {grown} measured");
    let mut sum = Bytes(0);
    wait_for("the store to leave room", || {
        let stats = stats(&mount).0;
        sum = Bytes(stats.store.limit.0 + stats.files.memory.0);
        sum <= REQUESTED
    });
}
