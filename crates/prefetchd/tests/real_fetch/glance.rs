//! Glances: what is missing is seen at once, nothing is read for it, and nobody waits for what hangs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use eke_linux::Root;
use eke_prefetch_model::Kind;
use eke_prefetchd::fetch::glance::Seen;
use eke_prefetchd::fetch::{Fetcher, Haste, Limits, Want};
use eke_testkit::wait::wait_for;

use super::silent::{Silence, Silent};
use super::stage::{LONG, Stage, quick, wait, whole};
use super::{fetcher, known_quick, pages};

/// Threads are counted by their name, which those of the other test have, too.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[test]
fn what_is_missing_is_seen_and_not_read() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(stage) = Stage::set("what_is_missing_is_seen_and_not_read", quick()) else { return };
    let [first, second] = ["a", "b"].map(|name| stage.file(name, 300_000));
    let wants: Arc<[Want]> = [whole(&first), whole(&second)].into();
    let other = Want { stamp: wants[1].stamp, ..wants[0].clone() };
    stage.cool();
    let fetcher = fetcher();
    let glance = |groups| fetcher.glance(groups, Haste::AtExec, LONG).unwrap();
    assert_eq!(glance(vec![Arc::clone(&wants)]), [Some(Seen::Missing)]);
    wait(&fetcher.start(wants[..1].to_vec(), Haste::AtExec).unwrap());
    let read = stage.disk.stats().reads;
    let groups: [Arc<[Want]>; 3] = [wants[..1].into(), wants[1..].into(), [other].into()];
    assert_eq!(glance(groups.to_vec()), [Some(Seen::There), Some(Seen::Missing), Some(Seen::Changed)]);
    assert_eq!(stage.disk.stats().reads, read, "the disk was not asked");
    assert_eq!(glance(vec![]), []);
}

#[test]
fn nobody_waits_for_a_glance_that_hangs_and_it_is_not_tried_for_ever() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(why) = eke_testkit::real::lacking(&["/dev/fuse"]) {
        return eke_testkit::real::skip(
            "nobody_waits_for_a_glance_that_hangs_and_it_is_not_tried_for_ever",
            &why,
        );
    }
    let silent = Silent::mount(Silence::Lookup);
    let (path, stamp) = silent.file("x");
    let hangs: Arc<[Want]> = [Want { path, kind: Kind::File, stamp, pages: pages(&[(0, 1)]) }].into();
    let at_most = Duration::from_millis(20);
    let limits = Limits { reserve_bytes: 0, patience: Duration::from_millis(300), ..Limits::default() };
    let fetcher = Fetcher::new(Root::host(), limits);
    for _ in 0..3 {
        assert_eq!(fetcher.glance(vec![Arc::clone(&hangs)], Haste::AtExec, at_most).unwrap(), [None]);
    }
    let threads = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
        tasks.flatten().filter_map(|task| name(task).ok()).filter(|name| name == "glance\n").count()
    };
    assert_eq!(threads(), 3);
    // A fetch that hangs there too bars the mount: what is there is passed over, and nobody hangs any more.
    fetcher.know(known_quick(&[&silent]));
    wait(&fetcher.start(hangs.to_vec(), Haste::AtExec).unwrap());
    let before = threads();
    for _ in 0..20 {
        let seen = fetcher.glance(vec![Arc::clone(&hangs)], Haste::AtExec, LONG).unwrap();
        assert_eq!(seen, [Some(Seen::There)], "nothing of it is looked at");
    }
    // Who has answered ends a moment later.
    wait_for("none of them hangs", || threads() == before);
    // Where nothing is barred only so many hang.
    let other = Fetcher::new(Root::host(), limits);
    for _ in 0..20 {
        assert_eq!(other.glance(vec![Arc::clone(&hangs)], Haste::AtExec, at_most).unwrap(), [None]);
    }
    assert_eq!(threads(), before + 4);
    silent.answer();
    wait_for("all end once it answers", || threads() == 0);
    // Then there are glances again; what cannot be opened is nothing that could be read.
    assert_eq!(other.glance(vec![hangs], Haste::AtExec, LONG).unwrap(), [Some(Seen::There)]);
}
