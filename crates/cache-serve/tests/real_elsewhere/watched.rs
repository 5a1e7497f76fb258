//! Lost reports of changes, while a file system inside hangs.

use std::fs;
use std::io::Write;

use eke_testkit::real::{lacking, lock_machine, skip};
use eke_testkit::wait::wait_for;

use crate::child::Child;
use crate::common::server::Stopped;
use crate::scene::{LARGE, Scene};
use crate::{NAMES_STAY, OTHER, READ, USER, cannot_run};

/// How many reports the kernel keeps.
const QUEUE: &str = "/proc/sys/fs/fanotify/max_queued_events";
/// Creates so many files in the directory `$1`.
const FLOOD: &str = "cd \"$1\" && mkdir flood && cd flood && seq";
const SIZE: &str = "stat -c %s \"$1\"";

#[test]
fn after_lost_reports_changes_elsewhere_are_reported() {
    const TEST: &str = "after_lost_reports_changes_elsewhere_are_reported";
    if cannot_run(TEST) {
        return;
    }
    if let Some(why) = lacking(&[QUEUE]) {
        return skip(TEST, &why);
    }
    let most: u32 = fs::read_to_string(QUEUE).unwrap().trim().parse().unwrap();
    if most > 100_000 {
        return skip(TEST, "the queue is longer than a test should fill");
    }
    let _machine = lock_machine();
    let mut scene = Scene::watched(NAMES_STAY);
    let (backing, place) = (scene.mount().backing().to_owned(), scene.mount().place().to_owned());
    // From before the mount: nothing of it was reported.
    let name = format!("large-{OTHER}");
    let before = format!("{LARGE}\n");
    assert_eq!(scene.runs(SIZE, &place.join(&name), 0).unwrap(), before);
    // A file there is open, and a read of it waits.
    scene.children.push(Child::shell(READ, &place.join("inner/0"), USER));
    scene.children[0].is_ready();
    scene.gate().close();
    scene.children[0].go();

    let stopped = Stopped::new(scene.mount().server.worker());
    scene.runs(&format!("{FLOOD} {} | xargs touch", most + 100), &backing, 0).unwrap();
    drop(stopped);
    let mut file = fs::File::options().append(true).open(backing.join(&name)).unwrap();
    wait_for("a change after the lost ones", || {
        // The reports of the first ones may be lost, too.
        file.write_all(b"more").unwrap();
        scene.runs(SIZE, &place.join(&name), 0).unwrap() != before
    });
    assert_eq!(scene.ended(), 0, "the read waits");
}
