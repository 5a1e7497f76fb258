//! A file system that hangs inside a served directory keeps only its own users waiting. Real kernel, real program.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "test code")]

mod child;
#[path = "../common/mod.rs"]
mod common;
mod hanging;
mod mapping;
mod scene;
mod subvolume;
mod watched;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::channel;
use std::time::Duration;

use eke_testkit::real::{lacking, lock_machine, no_program, skip};
use eke_testkit::wait::wait_for;

use crate::child::Child;
use crate::common::NEEDS;
use crate::common::mount::{Mount, scratch};
use crate::hanging::{FILES, Hanging};
use crate::scene::Scene;

/// A user's share of the sessions.
const SHARE: usize = 64;
/// The share of all users.
const SHARES: usize = 96;
/// The user whose requests wait, and another one.
const USER: u32 = 12_345;
const OTHER: u32 = 12_346;

/// Names stay in the kernel, or are looked up again each time.
const NAMES_STAY: u32 = 3600;
const NAMES_END: u32 = 0;

/// What the shell of a user does with the path in `$1`. It begins after a line on standard input.
const LOOK_UP: &str = "echo ready; read -r go; exec cat \"$1\"";
const READ: &str = "exec 3<\"$1\"; echo ready; read -r go; exec cat <&3";
const STAT: &str = "echo ready; read -r go; exec stat -c file \"$1\"";

fn cannot_run(test: &str) -> bool {
    let why = lacking(&NEEDS).or_else(|| no_program(&["cat", "stat", "ls", "sh"]));
    why.iter().for_each(|why| skip(test, why));
    why.is_some()
}

/// Starts a request on each file, by these users in turn, when the file system hangs. Waits until all but `share` are refused.
fn fill(scene: &mut Scene, users: &[u32], share: usize, script: &str, paths: impl Fn(usize) -> String) {
    for n in 0..FILES {
        let path = scene.mount().place().join(paths(n));
        scene.children.push(Child::shell(script, &path, users[n % users.len()]));
    }
    scene.children.iter().for_each(Child::is_ready);
    scene.gate().close();
    scene.children.iter_mut().for_each(Child::go);
    let refused = FILES - share;
    wait_for("the refused requests", || {
        let ended = scene.ended();
        if ended >= refused { Ok(()) } else { Err(format!("{ended} of {refused} were refused")) }
    });
}

/// What the rest of the mount does meanwhile.
fn others_are_answered(scene: &mut Scene) {
    let place = scene.mount().place().to_owned();
    for user in [USER, OTHER, 0] {
        let read = scene.runs("cat \"$1\" | cksum", &place.join(format!("large-{user}")), user);
        assert!(read.is_ok_and(|text| text.ends_with(&format!(" {}\n", scene::LARGE))), "{user}");
        let listed = scene.runs("ls -A \"$1\"", &place, user).unwrap();
        assert!(listed.lines().any(|name| name == "inner"), "{listed}");
    }
    let made = scene.runs("echo text >\"$1\" && cat \"$1\" && rm \"$1\"", &place.join("new"), 0);
    assert_eq!(made.unwrap(), "text\n");
}

fn holds_no_others(test: &str, names: u32, script: &str, paths: impl Fn(usize) -> String, text: &str) {
    if cannot_run(test) {
        return;
    }
    let _machine = lock_machine();
    let mut scene = Scene::new(names);
    fill(&mut scene, &[USER], SHARE, script, paths);
    others_are_answered(&mut scene);
    assert_eq!(scene.ended(), FILES - SHARE, "the others wait");
    scene.gate().open();
    let outputs: Vec<_> = scene.children.drain(..).map(Child::output).collect();
    let (answered, refused): (Vec<_>, Vec<_>) = outputs.into_iter().partition(Result::is_ok);
    // A place comes back after the answer, so the next request of the same process may find all taken.
    assert!((SHARE / 2..=SHARE).contains(&answered.len()), "{}", answered.len());
    assert!(answered.iter().flatten().all(|output| output.contains(text)), "{answered:?}");
    let busy = |refused: &Result<String, String>| refused.as_ref().is_err_and(|e| e.contains("busy"));
    assert!(refused.iter().all(busy), "{refused:?}");
}

#[test]
fn lookups_on_it_hold_no_others() {
    let path = |n| format!("inner/{n}");
    holds_no_others("lookups_on_it_hold_no_others", NAMES_STAY, LOOK_UP, path, hanging::TEXT);
}

#[test]
fn reads_and_releases_on_it_hold_no_others() {
    let path = |n| format!("inner/{n}");
    holds_no_others("reads_and_releases_on_it_hold_no_others", NAMES_STAY, READ, path, hanging::TEXT);
}

#[test]
fn visits_of_its_mount_point_hold_no_others() {
    let path = |_| "inner".to_owned();
    holds_no_others("visits_of_its_mount_point_hold_no_others", NAMES_END, STAT, path, "file");
}

#[test]
fn a_store_through_a_mapping_is_kept_while_the_share_is_full() {
    const TEST: &str = "a_store_through_a_mapping_is_kept_while_the_share_is_full";
    if cannot_run(TEST) {
        return;
    }
    let _machine = lock_machine();
    let mut scene = Scene::new(NAMES_STAY);
    let kept = scene.mount().place().join("inner").join(hanging::KEPT);
    let mut stores = mapping::child(&kept);
    stores.is_ready();
    fill(&mut scene, &[USER, OTHER], SHARES, READ, |n| format!("inner/{n}"));
    stores.go();
    scene.children.push(stores);
    let status = wait_for("msync(2)", || scene.children.last_mut()?.exit_status());
    assert!(status.success(), "msync(2) failed");
    assert_eq!(scene.inner.kept(), mapping::STORED);
    scene.gate().open();
}

/// The served directory is that file system itself, so nothing is refused.
#[test]
fn names_that_wait_in_the_directory_itself_leave_sessions_to_reads() {
    if cannot_run("names_that_wait_in_the_directory_itself_leave_sessions_to_reads") {
        return;
    }
    let _machine = lock_machine();
    let scratch = scratch();
    let below = Hanging::new(scratch.path());
    let mount = Mount::of(scratch.path());
    let kept = File::open(mount.place().join(hanging::KEPT)).unwrap();
    let children = (0..FILES).map(|n| Child::shell(STAT, &mount.place().join(n.to_string()), USER));
    let mut children: Vec<_> = children.collect();
    children.iter().for_each(Child::is_ready);
    below.gate.close();
    children.iter_mut().for_each(Child::go);
    // The requests come before the read. A read that comes too early is answered, and the test shows nothing.
    std::thread::sleep(Duration::from_secs(1));
    let (sender, answer) = channel();
    std::thread::spawn(move || sender.send(kept.read_at(&mut [0; 16], 0)));
    let read = answer.recv_timeout(SOON);
    let ended = children.iter_mut().filter_map(Child::exit_status).count();
    below.gate.open();
    assert_eq!(read.expect("no answer while names wait").unwrap(), 16);
    assert_eq!(ended, 0, "the names wait");
    assert!(children.into_iter().all(|child| child.output().is_ok()));
}

/// Longer than a request takes on a busy machine.
const SOON: Duration = Duration::from_secs(30);
/// Shorter than the bound of a test program without output.
const HANGS: Duration = Duration::from_secs(180);
