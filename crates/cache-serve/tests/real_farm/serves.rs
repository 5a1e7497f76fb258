//! What one node has read, others get from the tier, and never older than the file.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use eke_model::units::Bytes;
use eke_testkit::wait::wait_for;

use crate::common::content::stats;
use crate::common::mount::Mount;
use crate::engine::{Engine, sentinel};
use crate::node::{CONTENT, FILES, Origin, SIZE, cannot_run, shared, wait_offered, warm};

/// A node that is connected to the engine.
pub fn connected(origin: &Origin, url: &str) -> Mount {
    let mount = origin.node(url, |_| {});
    wait_for("all connections", || shared(&mount).connected == 6);
    mount
}

/// A node that has read all files and offered them.
pub fn first(origin: &Origin, url: &str) -> Mount {
    let mount = connected(origin, url);
    CONTENT.check(&mount, &[]);
    wait_offered(&mount);
    mount
}

#[test]
fn what_one_node_has_read_others_get_from_the_tier() {
    if cannot_run("what_one_node_has_read_others_get_from_the_tier") {
        return;
    }
    let (origin, engine) = (Origin::new(), Engine::start(&[]));
    let url = format!("redis://127.0.0.1:{}", engine.port);
    let one = first(&origin, &url);
    let offered = shared(&one);
    assert!(offered.bytes_out.0 > 0 && offered.refused == 0, "{offered:?}");
    assert!(
        offered.bytes_out.0 < stats(&one).tier.from_backing.0 * 3 / 4,
        "compressed as in the store: {offered:?}"
    );
    let two = connected(&origin, &url);
    CONTENT.check(&two, &[]);
    let got = stats(&two);
    assert!(got.shared.hits >= FILES * 4, "{:?}", got.shared);
    assert_eq!(got.shared.refused, 0, "{:?}", got.shared);
    assert!(got.tier.from_backing.0 < stats(&one).tier.from_backing.0 / 2, "{:?}", got.tier);
    // From its own store now.
    let hits = shared(&two).hits;
    CONTENT.check(&two, &[]);
    assert_eq!(shared(&two).hits, hits);
    wait_for("the engine's report", || shared(&two).engine_memory.0 > 0);
}

#[test]
fn a_change_by_one_node_is_seen_by_the_other() {
    if cannot_run("a_change_by_one_node_is_seen_by_the_other") {
        return;
    }
    let (origin, engine) = (Origin::new(), Engine::start(&[]));
    let url = format!("redis://127.0.0.1:{}", engine.port);
    let (one, two) = (first(&origin, &url), connected(&origin, &url));
    CONTENT.check(&two, &[]);
    // Of the same length, through one node, through the other, and below both.
    let write = |path: &std::path::Path, file, version| {
        let of = OpenOptions::new().write(true).open(path).unwrap();
        of.write_all_at(&CONTENT.of(file, version), 0).unwrap();
    };
    write(&one.place().join("0"), 0, 1);
    write(&two.place().join("1"), 1, 2);
    write(&origin.file(2), 2, 3);
    let changed = [(0, 1), (1, 2), (2, 3)];
    for node in [&one, &two, &one] {
        CONTENT.check(node, &changed);
    }
    // A third node, which has no stamps, and an old version in the engine.
    CONTENT.check(&connected(&origin, &url), &changed);
    // Then the new versions are shared.
    origin.settle();
    let (three, hits) = (connected(&origin, &url), shared(&two).hits);
    CONTENT.check(&three, &changed);
    CONTENT.check(&two, &changed);
    CONTENT.check(&connected(&origin, &url), &changed);
    assert!(shared(&two).hits >= hits && shared(&three).refused == 0);
}

#[test]
fn a_new_worker_and_a_new_process_go_on() {
    if cannot_run("a_new_worker_and_a_new_process_go_on") {
        return;
    }
    let (origin, engine) = (Origin::new(), Engine::start(&[]));
    let url = format!("redis://127.0.0.1:{}", engine.port);
    drop(first(&origin, &url));
    let mount = connected(&origin, &url);
    mount.kill_worker();
    wait_for("the engine's state", || shared(&mount).connected > 0);
    assert_eq!(CONTENT.read(&mount, 3), CONTENT.of(3, 0));
    assert!(shared(&mount).hits > 0, "{:?}", shared(&mount));
    let process = mount.server.child_named("eke-cache-share").unwrap();
    crate::common::server::kill(process, rustix::process::Signal::KILL);
    CONTENT.check(&mount, &[]);
    wait_for("another process", || {
        mount.server.child_named("eke-cache-share").is_some_and(|pid| pid != process)
    });
    CONTENT.check(&mount, &[]);
}

#[test]
fn the_master_that_a_sentinel_names_is_used() {
    if cannot_run("the_master_that_a_sentinel_names_is_used") {
        return;
    }
    let (origin, master) = (Origin::new(), Engine::start(&[]));
    let sentinel = sentinel(&master);
    let url = format!("redis+sentinel://127.0.0.1:{}/farm", sentinel.port);
    drop(first(&origin, &url));
    let two = connected(&origin, &url);
    CONTENT.check(&two, &[]);
    assert!(shared(&two).hits >= FILES * 4, "{:?}", shared(&two));
}

#[test]
fn what_is_warmed_comes_from_the_tier_too() {
    if cannot_run("what_is_warmed_comes_from_the_tier_too") {
        return;
    }
    let (origin, engine) = (Origin::new(), Engine::start(&[]));
    let url = format!("redis://127.0.0.1:{}", engine.port);
    let warmed = |mount: &Mount| {
        let progress = warm(mount);
        assert_eq!(progress.kept, Bytes(FILES * SIZE as u64), "{progress:?}");
        progress.read
    };
    let one = connected(&origin, &url);
    assert_eq!(warmed(&one), Bytes(FILES * SIZE as u64));
    wait_offered(&one);
    let two = connected(&origin, &url);
    assert_eq!(warmed(&two), Bytes(0));
    let hits = shared(&two).hits;
    assert_eq!(hits, FILES * 5);
    CONTENT.check(&two, &[]);
    assert_eq!(stats(&two).tier.from_backing, Bytes(0));
}
