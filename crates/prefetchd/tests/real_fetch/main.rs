//! Reading on the real kernel: exactly the requested pages, no file that replaced another, and no harm to others' I/O.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "test code")]

mod probe;
mod silent;
mod slow_ext4;

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, OpenOptionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use eke_linux::Root;
use eke_linux::parse::mountinfo;
use eke_linux::parse::mountinfo::mount_of;
use eke_prefetch_disk::{DiskKind, DiskProfile, Measured, Target, backing, decide, measure};
use eke_prefetch_model::{Kind, PAGE_BYTES, Pages, Span, Stamp};
use eke_prefetchd::read::FetchEnd;
use eke_prefetchd::request::{Priority, ReadRequest};
use eke_prefetchd::schedule::{Limits, Scheduler};
use eke_slow_disk::Profile;
use eke_testkit::real::{lacking, lock_machine, skip};
use eke_testkit::wait::wait_for;
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

use self::silent::{Silence, Silent};
use self::slow_ext4::{SlowExt4, fast, pages, request, resident, run, wait, whole};

fn scheduler() -> Scheduler {
    Scheduler::new(Root::host(), Limits { reserve_bytes: 0, ..Limits::default() })
}

/// The profile of a path's disk with this measurement.
fn profile(path: &Path, measured: Option<Measured>) -> DiskProfile {
    let mounts = mountinfo::parse(&fs::read("/proc/self/mountinfo").unwrap());
    decide(backing(&Root::host(), mount_of(path, &mounts).unwrap(), &mounts), measured)
}

fn like(request_s: f64, mb_per_s: f64) -> Measured {
    Measured {
        request_s,
        near_request_s: request_s / 2.0,
        depth_gain: 1.0,
        byte_s: 1e-6 / mb_per_s,
        reads: 1,
        bytes: 1,
        took_s: 1.0,
    }
}

#[test]
fn exactly_the_requested_pages_are_resident_and_are_not_read_again() {
    let Some(disk) =
        SlowExt4::create("exactly_the_requested_pages_are_resident_and_are_not_read_again", fast())
    else {
        return;
    };
    let path = disk.file("a/file", 8 << 20);
    let some = pages(&[(0, 3), (100, 101), (700, 1100), (2047, 2048)]);
    let requested = request(&path, some.clone());
    disk.cool();
    let report = wait(&scheduler().start(vec![requested.clone()], Priority::AtExec).unwrap());
    assert_eq!((report.ended, report.failed), (Some(FetchEnd::Done), 0), "{report:?}");
    let present = resident(&File::open(&path).unwrap(), 2048);
    let all: std::collections::BTreeSet<u64> =
        some.spans().iter().flat_map(|span| span.first..span.end).collect();
    assert_eq!(present, all);
    assert_eq!((report.fetched_bytes, report.resident_bytes), (some.bytes(), 0));

    let read = disk.slow_disk.stats().reads;
    let again = wait(&scheduler().start(vec![requested], Priority::AtExec).unwrap());
    assert_eq!((again.fetched_bytes, again.resident_bytes, again.pieces), (0, some.bytes(), 0));
    assert_eq!(disk.slow_disk.stats().reads, read, "the disk was not read");
}

#[test]
fn a_rotating_disk_is_read_in_disk_order_and_all_is_resident() {
    let Some(disk) = SlowExt4::create("a_rotating_disk_is_read_in_disk_order_and_all_is_resident", fast())
    else {
        return;
    };
    let files: Vec<_> = (0..40).map(|n| disk.file(&format!("d{}/f{n}", n % 4), 300_000)).collect();
    let mut requests: Vec<ReadRequest> = files.iter().rev().map(|path| whole(path)).collect();
    requests.push(request(&disk.top().join("d1"), Pages::default()));
    disk.cool();
    let scheduler = scheduler();
    scheduler.set_profiles(vec![profile(&files[0], Some(like(0.008, 60.0)))]);
    let report = wait(&scheduler.start(requests, Priority::AtExec).unwrap());
    assert_eq!((report.ended, report.failed, report.notes.len()), (Some(FetchEnd::Done), 0, 0), "{report:?}");
    assert_eq!((report.located, report.directories), (40, 1));
    assert!(files.iter().all(|path| resident(&File::open(path).unwrap(), 74).len() == 74));
    assert_eq!(report.fetched_bytes, 40 * 74 * PAGE_BYTES);
}

/// Visits every entry, as a launch might.
fn walk(dir: &Path) -> usize {
    let each = fs::read_dir(dir).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap();
        1 + if meta.is_dir() { walk(&path) } else { 0 }
    });
    each.sum()
}

#[test]
fn with_the_devices_pages_a_tree_is_walked_without_the_disk() {
    let Some(disk) = SlowExt4::create("with_the_devices_pages_a_tree_is_walked_without_the_disk", fast())
    else {
        return;
    };
    (0..300).for_each(|n| drop(disk.file(&format!("d{}/e{}/f{n}", n % 7, n % 3), 10)));
    disk.cool();
    let before = disk.slow_disk.stats().reads.requests;
    let seen = walk(&disk.top());
    let cold_reads = disk.slow_disk.stats().reads.requests - before;
    assert!(seen > 300 && cold_reads > 5, "cold, a walk reads: {cold_reads}");

    // As a tracer would record.
    let device = File::open(disk.device()).unwrap();
    let learned: Pages = resident(&device, (256 << 20) / PAGE_BYTES)
        .into_iter()
        .filter_map(|page| Span::new(page, page + 1))
        .collect();
    drop(device);
    let dev = fs::metadata(disk.top()).map(|meta| std::os::unix::fs::MetadataExt::dev(&meta)).unwrap();
    let metadata = ReadRequest {
        path: disk.device(),
        kind: Kind::Device,
        stamp: Stamp { dev, ..Stamp::default() },
        pages: learned,
        user: 0,
        is_own: false,
    };
    disk.cool();
    let report = wait(&scheduler().start(vec![metadata], Priority::AtExec).unwrap());
    assert_eq!((report.ended, report.failed), (Some(FetchEnd::Done), 0), "{report:?}");
    let before = disk.slow_disk.stats().reads.requests;
    assert_eq!(walk(&disk.top()), seen);
    assert_eq!(
        disk.slow_disk.stats().reads.requests - before,
        0,
        "all of it was resident ({cold_reads} reads without)"
    );
}

#[test]
fn a_replacement_of_a_file_is_not_touched() {
    let Some(disk) = SlowExt4::create("a_replacement_of_a_file_is_not_touched", fast()) else { return };
    let names = ["fifo", "link", "replaced", "changed", "gone", "node", "socket"];
    let files: Vec<_> = names.iter().map(|name| disk.file(name, 100_000)).collect();
    let secret = disk.file("secret", 100_000);
    let requests: Vec<ReadRequest> = files.iter().map(|path| whole(path)).collect();
    // Not removed: their inodes' numbers would be given again.
    files.iter().for_each(|path| fs::rename(path, path.with_extension("old")).unwrap());
    mknodat(CWD, &files[0], FileType::Fifo, Mode::RUSR, 0).unwrap();
    symlink(&secret, &files[1]).unwrap();
    disk.file("replaced", 100_000);
    disk.file("changed", 100_001);
    // The disk's own node at another path: reading it would read the disk.
    let dev = fs::metadata(disk.device()).map(|meta| std::os::unix::fs::MetadataExt::rdev(&meta)).unwrap();
    mknodat(CWD, &files[5], FileType::BlockDevice, Mode::RUSR, dev).unwrap();
    drop(std::os::unix::net::UnixListener::bind(&files[6]).unwrap());
    let mut requests = requests;
    let device = Stamp { dev, ..Stamp::default() };
    requests.push(ReadRequest {
        path: files[5].clone(),
        kind: Kind::Device,
        stamp: device,
        pages: pages(&[(20_000, 20_100)]),
        user: 0,
        is_own: false,
    });
    disk.cool();
    let report = wait(&scheduler().start(requests, Priority::AtExec).unwrap());
    assert_eq!(
        (report.ended, report.fetched_bytes, report.pieces),
        (Some(FetchEnd::Done), 0, 0),
        "{report:?}"
    );
    assert_eq!(report.failed, 8, "{report:?}");
    let why = |name: &str| &report.failures.iter().find(|failure| failure.path.ends_with(name)).unwrap().why;
    assert!(why("fifo").contains("FIFO") && why("link").contains("symbolic link"), "{report:?}");
    assert!(why("replaced").contains("is there now") || why("replaced").contains("changed"), "{report:?}");
    for path in [&files[2], &files[3], &secret] {
        assert_eq!(resident(&File::open(path).unwrap(), 25).len(), 0, "{}", path.display());
    }
}

#[test]
fn errors_of_the_disk_are_counted_and_reported() {
    let Some(disk) = SlowExt4::create("errors_of_the_disk_are_counted_and_reported", fast()) else { return };
    let (small, large) = (disk.file("small", 1 << 20), disk.file("large", 40 << 20));
    let requests = |path: &Path| vec![whole(path)];
    disk.cool();
    // Their metadata is resident before.
    let open = [&small, &large].map(|path| File::open(path).unwrap());
    open.iter().for_each(|file| assert_eq!(file.read_at(&mut [0; 1], 0).unwrap(), 1));
    disk.slow_disk.fail_by_chance(1.0, 1, rustix::io::Errno::IO);
    let report = wait(&scheduler().start(requests(&small), Priority::AtExec).unwrap());
    assert_eq!((report.ended, report.fetched_bytes), (Some(FetchEnd::Done), 0), "{report:?}");
    assert!(report.failed >= 1 && report.failures[0].why.contains("Input/output error"), "{report:?}");
    assert_eq!(report.left_bytes + report.resident_bytes, 1 << 20);
    let report = wait(&scheduler().start(requests(&large), Priority::AtExec).unwrap());
    assert_eq!(
        report.ended,
        Some(FetchEnd::Errors),
        "a disk that only fails is not read further: {report:?}"
    );
    assert!(report.failed < 40, "{report:?}");
    disk.slow_disk.heal();
    let report = wait(&scheduler().start(requests(&large), Priority::AtExec).unwrap());
    assert_eq!((report.ended, report.failed), (Some(FetchEnd::Done), 0), "{report:?}");
}

#[test]
fn a_stopped_fetch_ends_and_reports_what_is_left() {
    let slow = Profile { rate: 10_000_000, ..Profile::plain() };
    let Some(disk) = SlowExt4::create("a_stopped_fetch_ends_and_reports_what_is_left", slow) else { return };
    let path = disk.file("file", 60 << 20);
    let requested = whole(&path);
    disk.cool();
    let fetch = scheduler().start(vec![requested], Priority::AtExec).unwrap();
    wait_for("something is fetched", || fetch.report().pieces > 0);
    fetch.stop();
    let report = wait(&fetch);
    assert_eq!(report.ended, Some(FetchEnd::Stopped));
    assert!(report.fetched_bytes > 0 && report.left_bytes > 0, "{report:?}");
    assert_eq!(report.fetched_bytes + report.left_bytes + report.resident_bytes, 60 << 20);
}

/// What it has open keeps its file system from being unmounted when the program has ended.
#[test]
fn a_stopped_fetch_has_only_open_what_it_is_reading() {
    let slow = Profile { rate: 1_000_000, ..Profile::plain() };
    let test = "a_stopped_fetch_has_only_open_what_it_is_reading";
    let Some(disk) = SlowExt4::create(test, slow) else { return };
    let mut files: Vec<_> = (0..10).map(|n| disk.file(&format!("f{n}"), 4096)).collect();
    files.push(disk.file("large", 1 << 20));
    let requests: Vec<ReadRequest> = files.iter().map(|path| whole(path)).collect();
    let scheduler = scheduler();
    // One reader, in this order, and the large file in one piece, which takes a second
    scheduler.set_profiles(vec![profile(&files[0], Some(like(0.0006, 400.0)))]);
    disk.cool();
    let fetch = scheduler.start(requests, Priority::AtExec).unwrap();
    wait_for("it reads the large file", || open_below(&disk.top()) == 11);
    fetch.stop();
    wait_for("the others are closed", || open_below(&disk.top()) == 1);
    assert_eq!(wait(&fetch).ended, Some(FetchEnd::Stopped));
    assert_eq!(open_below(&disk.top()), 0);
}

#[test]
fn without_memory_to_spare_nothing_is_read_ahead() {
    let Some(disk) = SlowExt4::create("without_memory_to_spare_nothing_is_read_ahead", fast()) else {
        return;
    };
    let path = disk.file("file", 4 << 20);
    let requested = whole(&path);
    disk.cool();
    let scheduler = Scheduler::new(Root::host(), Limits { reserve_bytes: u64::MAX, ..Limits::default() });
    let fetch = scheduler.start(vec![requested.clone()], Priority::Ahead).unwrap();
    wait_for("it waits for memory", || fetch.report().waits_for_memory == 1);
    fetch.stop();
    assert_eq!((wait(&fetch).fetched_bytes, fetch.report().left_bytes), (0, 4 << 20));
    let report = wait(&scheduler.start(vec![requested], Priority::AtExec).unwrap());
    assert_eq!(report.fetched_bytes, 4 << 20, "a started program reads it anyway");
}

/// Reads scattered pages with direct I/O, as fast as the disk answers.
struct Reader {
    stop: Arc<AtomicBool>,
    reads: Arc<AtomicU64>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Reader {
    fn start(device: &Path) -> Self {
        let (stop, reads) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let direct = OFlags::DIRECT.bits() as i32;
        let file = fs::OpenOptions::new().read(true).custom_flags(direct).open(device).unwrap();
        let (ended, count) = (Arc::clone(&stop), Arc::clone(&reads));
        let thread = std::thread::spawn(move || {
            let mut memory = vec![0; 8192];
            let start = memory.as_ptr().align_offset(4096);
            while !ended.load(Ordering::Relaxed) {
                let nth = count.fetch_add(1, Ordering::Relaxed);
                file.read_exact_at(&mut memory[start..start + 4096], nth * 7919 % 60_000 * PAGE_BYTES)
                    .unwrap();
            }
        });
        Self { stop, reads, thread: Some(thread) }
    }

    fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// Files below `dir` that this process has open.
fn open_below(dir: &Path) -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap().flatten();
    links.filter(|fd| fs::read_link(fd.path()).is_ok_and(|file| file.starts_with(dir))).count()
}

#[test]
fn ahead_it_gives_way_to_a_busy_reader_and_goes_on_afterwards() {
    let slow = Profile { rate: 10_000_000, iops: Some(400), ..Profile::plain() };
    let Some(disk) = SlowExt4::create("ahead_it_gives_way_to_a_busy_reader_and_goes_on_afterwards", slow)
    else {
        return;
    };
    let path = disk.file("file", 48 << 20);
    let requested = whole(&path);
    let scheduler = scheduler();
    scheduler
        .set_profiles(vec![profile(&path, Some(Measured { near_request_s: 0.0025, ..like(0.0025, 10.0) }))]);
    disk.cool();
    let fetch = scheduler.start(vec![requested], Priority::Ahead).unwrap();
    wait_for("it reads", || fetch.report().pieces >= 3);
    let waits = fetch.report().waits_for_disk;
    let reader = Reader::start(&disk.device());
    wait_for("the reader reads", || reader.reads() > 1);
    let began = fetch.report().pieces;
    wait_for("it waits", || fetch.report().waits_for_disk > waits);
    let stopped = fetch.report().pieces;
    assert!(stopped - began < 60, "it read {} of about 200 pieces after the other began", stopped - began);
    let more = reader.reads() + 200;
    wait_for("the reader has read on", || reader.reads() > more);
    let meanwhile = fetch.report().pieces;
    assert!(meanwhile - stopped <= 1, "only what was in flight: {}", meanwhile - stopped);
    assert_eq!(open_below(&disk.top()), 0, "what it waits to read cannot be unmounted");
    drop(reader);
    let report = wait(&fetch);
    assert_eq!((report.ended, report.fetched_bytes), (Some(FetchEnd::Done), 48 << 20), "{report:?}");
}

/// Read although servers are not: their profile says so.
fn fast_servers(silent: &[&Silent]) -> Vec<DiskProfile> {
    let enabled = |silent: &&Silent| {
        let mut profile = profile(silent.top(), Some(like(0.001, 100.0)));
        profile.strategy.is_enabled = true;
        profile
    };
    silent.iter().map(enabled).collect()
}

#[test]
fn file_systems_that_hang_block_nothing_and_are_not_tried_again() {
    if let Some(why) = lacking(&["/dev/fuse"]) {
        return skip("file_systems_that_hang_block_nothing_and_are_not_tried_again", &why);
    }
    let _machine = lock_machine();
    let here = tempfile::tempdir().unwrap();
    fs::write(here.path().join("file"), [1; 5000]).unwrap();
    let ours = whole(&here.path().canonicalize().unwrap().join("file"));
    let silent = [Silence::Read, Silence::Lookup, Silence::Read, Silence::Lookup].map(Silent::mount);
    let requests = |silent: &Silent| -> Vec<ReadRequest> {
        let each = (0..6).map(|n| {
            let (path, stamp) = silent.file(&format!("f{n}"));
            ReadRequest { path, kind: Kind::File, stamp, pages: pages(&[(0, 256)]), user: 0, is_own: false }
        });
        each.collect()
    };
    let limits = Limits { reserve_bytes: 0, patience: Duration::from_millis(300), ..Limits::default() };
    let scheduler = Scheduler::new(Root::host(), limits);
    let unknown = wait(&scheduler.start(requests(&silent[0]), Priority::AtExec).unwrap());
    assert_eq!((unknown.stuck_workers, unknown.failed), (0, 6), "servers are not read: {unknown:?}");

    scheduler.set_profiles(fast_servers(&silent.iter().collect::<Vec<_>>()));
    let mut both = requests(&silent[0]);
    both.push(ours.clone());
    let report = wait(&scheduler.start(both, Priority::AtExec).unwrap());
    assert_eq!((report.stuck_workers, scheduler.stuck().count()), (1, 1), "one worker is stuck: {report:?}");
    assert_eq!(report.fetched_bytes + report.resident_bytes, 8192, "the other disk is read");
    let report = wait(&scheduler.start(requests(&silent[0]), Priority::AtExec).unwrap());
    assert_eq!((report.stuck_workers, report.failed), (0, 6), "it is not tried again: {report:?}");

    let rest: Vec<ReadRequest> = silent[1..].iter().flat_map(requests).collect();
    let report = wait(&scheduler.start(rest, Priority::AtExec).unwrap());
    assert_eq!(
        (report.stuck_workers, scheduler.stuck().count(), report.ended),
        (3, 4, Some(FetchEnd::Hangs)),
        "{report:?}"
    );
    let report = wait(&scheduler.start(vec![ours.clone()], Priority::AtExec).unwrap());
    assert_eq!(
        (report.ended, report.resident_bytes),
        (Some(FetchEnd::Hangs), 0),
        "four are stuck, none is started"
    );
    silent.iter().for_each(Silent::answer);
    wait_for("they all come back", || scheduler.stuck().count() == 0);
    let report = wait(&scheduler.start(vec![ours], Priority::AtExec).unwrap());
    assert_eq!((report.ended, report.resident_bytes), (Some(FetchEnd::Done), 8192));
}

#[test]
fn a_rotating_disk_is_recognised_by_its_requests() {
    let Some(disk) = SlowExt4::create("a_rotating_disk_is_recognised_by_its_requests", Profile::laptop())
    else {
        return;
    };
    run("sync", &[]);
    let mounts = mountinfo::parse(&fs::read("/proc/self/mountinfo").unwrap());
    let backing = backing(&Root::host(), mount_of(&disk.top(), &mounts).unwrap(), &mounts);
    let target = Target::of(&backing).unwrap();
    assert_eq!(target.path, disk.device());
    let mut measured = None;
    // Programs that examine new disks finish soon.
    wait_for("the disk is quiet", || {
        measured = measure(&Root::host(), &target, 1)
            .map_err(|e| assert!(e.to_string().contains("others use")))
            .ok();
        measured.is_some()
    });
    let measured = measured.unwrap();
    assert!(
        measured.request_s > 0.004 && measured.bytes <= 13 << 20,
        "no request is faster than the model: {measured:?}"
    );
    let decided = decide(backing, Some(measured));
    assert_ne!(decided.kind, DiskKind::Flash, "{:?}", decided.why);

    let reader = Reader::start(&disk.device());
    wait_for("the reader reads", || reader.reads() > 2);
    let refused = measure(&Root::host(), &target, 2).unwrap_err().to_string();
    assert!(refused.contains("others use the disk"), "{refused}");
}
