//! Probes find missing pages at once, read nothing, and never make the caller wait for a hanging one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use eke_linux::Root;
use eke_prefetch_model::Kind;
use eke_prefetchd::probe::prober::{Prober, Residency};
use eke_prefetchd::request::{Priority, ReadRequest};
use eke_prefetchd::schedule::{Limits, Scheduler};
use eke_testkit::wait::wait_for;

use super::silent::{Silence, Silent};
use super::slow_ext4::{LONG, SlowExt4, fast, wait, whole};
use super::{fast_servers, pages, scheduler};

/// Threads are counted by name, which both tests use.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[test]
fn missing_pages_are_found_and_not_read() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(disk) = SlowExt4::create("missing_pages_are_found_and_not_read", fast()) else { return };
    let [first, second] = ["a", "b"].map(|name| disk.file(name, 300_000));
    let requests: Arc<[ReadRequest]> = [whole(&first), whole(&second)].into();
    let other = ReadRequest { stamp: requests[1].stamp, is_own: true, ..requests[0].clone() };
    disk.cool();
    let scheduler = scheduler();
    let prober = Prober::new(Root::host(), Arc::clone(scheduler.stuck()));
    let probe = |groups| prober.probe(groups, Priority::AtExec, LONG).unwrap();
    assert_eq!(probe(vec![Arc::clone(&requests)]), [Some(Residency::Missing)]);
    wait(&scheduler.start(requests[..1].to_vec(), Priority::AtExec).unwrap());
    let read = disk.slow_disk.stats().reads;
    let groups: [Arc<[ReadRequest]>; 3] = [requests[..1].into(), requests[1..].into(), [other].into()];
    assert_eq!(
        probe(groups.to_vec()),
        [Some(Residency::Resident), Some(Residency::Missing), Some(Residency::Changed)]
    );
    assert_eq!(disk.slow_disk.stats().reads, read, "the disk was not read");
    assert_eq!(probe(vec![]), []);
}

#[test]
fn a_hanging_probe_blocks_no_caller_and_hanging_probes_are_limited() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(why) = eke_testkit::real::lacking(&["/dev/fuse"]) {
        return eke_testkit::real::skip(
            "a_hanging_probe_blocks_no_caller_and_hanging_probes_are_limited",
            &why,
        );
    }
    let silent = Silent::mount(Silence::Lookup);
    let (path, stamp) = silent.file("x");
    let hangs: Arc<[ReadRequest]> =
        [ReadRequest { path, kind: Kind::File, stamp, pages: pages(&[(0, 1)]), user: 0, is_own: false }]
            .into();
    let at_most = Duration::from_millis(20);
    let limits = Limits { reserve_bytes: 0, patience: Duration::from_millis(300), ..Limits::default() };
    let scheduler = Scheduler::new(Root::host(), limits);
    let prober = Prober::new(Root::host(), Arc::clone(scheduler.stuck()));
    for _ in 0..3 {
        assert_eq!(prober.probe(vec![Arc::clone(&hangs)], Priority::AtExec, at_most).unwrap(), [None]);
    }
    let threads = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
        tasks.flatten().filter_map(|task| name(task).ok()).filter(|name| name == "probe\n").count()
    };
    assert_eq!(threads(), 3);
    // A fetch that hangs there too bars the mount: probes skip it, and no more threads hang.
    scheduler.set_profiles(fast_servers(&[&silent]));
    wait(&scheduler.start(hangs.to_vec(), Priority::AtExec).unwrap());
    let before = threads();
    for _ in 0..20 {
        let seen = prober.probe(vec![Arc::clone(&hangs)], Priority::AtExec, LONG).unwrap();
        assert_eq!(seen, [Some(Residency::Resident)], "nothing of it is probed");
    }
    // Answered threads end a moment later.
    wait_for("none of them hangs", || threads() == before);
    // Without barred mounts the number of hanging probes is limited.
    let other = Prober::new(Root::host(), Arc::default());
    for _ in 0..20 {
        assert_eq!(other.probe(vec![Arc::clone(&hangs)], Priority::AtExec, at_most).unwrap(), [None]);
    }
    assert_eq!(threads(), before + 4);
    silent.answer();
    wait_for("all end once it answers", || threads() == 0);
    // Then probes work again; nothing is known of a file that cannot be opened.
    assert_eq!(
        other.probe(vec![hangs, [].into()], Priority::AtExec, LONG).unwrap(),
        [None, Some(Residency::Resident)]
    );
}
