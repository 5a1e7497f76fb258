//! Under a service manager eke has its own mount namespace. After that ends, the kernel prints the path of a swap area made in it without
//! `/dev`. Everything must work inside, and outside afterwards.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

use std::process::{Command, Stdio};

use common::{Ran, build_agent, eke, machine, ran};
use eke_testkit::real::{lacking, lock_machine, no_program, skip};
use eke_testkit::wait::wait_for;

/// Drop undoes the changes if `down` did not.
struct Undo;

impl Drop for Undo {
    fn drop(&mut self) {
        eke(&["down"]);
    }
}

/// Why the test cannot run.
fn skipped(test: &str) -> bool {
    let why = lacking(&["/sys/class/zram-control"]).or_else(|| no_program(&["unshare", "sh"]));
    why.inspect(|why| skip(test, why)).is_some()
}

/// `eke` in its own mount namespace, which ends with it.
fn inside(args: &[&str]) -> Ran {
    let mut command = Command::new("unshare");
    command.args(["-m", "--propagation", "private", env!("CARGO_BIN_EXE_eke")]).args(args);
    ran(&mut command)
}

fn up_inside() {
    let up = inside(&["up", "--agent", "none", "--backend", "zram", "--size", "64M"]);
    assert_eq!(up.status, Some(0), "{}", up.shown());
}

/// The paths of the swap areas as the kernel shows them.
fn shown() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/swaps").unwrap();
    text.lines().skip(1).filter_map(|l| Some(l.split_whitespace().next()?.to_owned())).collect()
}

/// Its root could stop the agent, and undo nothing.
#[test]
fn root_of_a_user_namespace_leaves_the_machine_alone() {
    if skipped("root_of_a_user_namespace_leaves_the_machine_alone") {
        return;
    }
    build_agent();
    let _lock = lock_machine();
    let mapped = |verb: &str| {
        let mut command = Command::new("unshare");
        ran(command.args(["-r", "-U", env!("CARGO_BIN_EXE_eke"), verb]))
    };
    // A package is removed in a container that has nothing of eke's.
    let nothing = mapped("down");
    assert_eq!(nothing.status, Some(0), "{}", nothing.shown());
    let _undo = Undo;
    let up = eke(&["up", "--size", "64M", "--backend", "zram"]);
    assert_eq!(up.status, Some(0), "{}", up.shown());
    for verb in ["up", "run", "down"] {
        let refused = mapped(verb);
        assert_eq!(refused.status, Some(4), "{}", refused.shown());
        assert!(refused.stderr.contains("root of a user namespace"), "{}", refused.shown());
    }
    assert_eq!(eke(&["status"]).status, Some(0), "the agent goes on");
}

#[test]
fn a_plan_applied_with_mounts_of_its_own_is_known_and_undone() {
    if skipped("a_plan_applied_with_mounts_of_its_own_is_known_and_undone") {
        return;
    }
    let _lock = lock_machine();
    let before = machine();
    let _undo = Undo;
    up_inside();
    for status in [eke(&["status", "--json"]), inside(&["status", "--json"])] {
        let json = status.json();
        assert_eq!(json["applied"], true, "{}", status.shown());
        assert!(json["backend"].as_str().unwrap().starts_with("zram"), "{}", status.shown());
    }
    assert!(eke(&["up", "--agent", "none"]).stdout.contains("is up already"));
    let down = eke(&["down"]);
    assert_eq!(down.status, Some(0), "{} {:?}", down.shown(), shown());
    assert_eq!(machine(), before);
}

#[test]
fn down_with_mounts_of_its_own_undoes_what_was_applied_outside() {
    if skipped("down_with_mounts_of_its_own_undoes_what_was_applied_outside") {
        return;
    }
    let _lock = lock_machine();
    let before = machine();
    let _undo = Undo;
    let up = eke(&["up", "--agent", "none", "--backend", "zram", "--size", "64M"]);
    assert_eq!(up.status, Some(0), "{}", up.shown());
    let down = inside(&["down"]);
    assert_eq!(down.status, Some(0), "{}", down.shown());
    assert_eq!(machine(), before);
}

#[test]
fn what_down_prints_undoes_it_as_a_shell_script() {
    if skipped("what_down_prints_undoes_it_as_a_shell_script") {
        return;
    }
    let _lock = lock_machine();
    let before = machine();
    let _undo = Undo;
    up_inside();
    let script = eke(&["down", "--print"]);
    let sh = ran(Command::new("sh").args(["-ec", &script.stdout]));
    assert_eq!(sh.status, Some(0), "{}: {}", sh.shown(), script.stdout);
    assert_eq!(machine(), before, "{}", script.stdout);
    assert_eq!(eke(&["down"]).status, Some(0), "and `down` has nothing left to do");
}

#[test]
fn the_agent_knows_a_device_whose_mount_is_gone() {
    if skipped("the_agent_knows_a_device_whose_mount_is_gone") {
        return;
    }
    build_agent();
    let _lock = lock_machine();
    let before = machine();
    let _undo = Undo;
    up_inside();
    let start = inside(&["up"]);
    assert_eq!(start.status, Some(0), "{}", start.shown());
    let status = eke(&["status", "--json"]);
    assert_eq!(status.status, Some(0), "{}", status.shown());
    let json = status.json();
    assert!(json["agent"]["pid"].is_u64() && json["applied"] == true, "{}", status.shown());
    assert!(json["backend"].as_str().unwrap().starts_with("zram"), "{}", status.shown());
    let down = eke(&["down"]);
    assert_eq!(down.status, Some(0), "{}", down.shown());
    assert_eq!(machine(), before);
}

#[test]
fn killed_in_the_middle_with_mounts_of_its_own_leaves_nothing_after_down() {
    if skipped("killed_in_the_middle_with_mounts_of_its_own_leaves_nothing_after_down") {
        return;
    }
    let _lock = lock_machine();
    let before = machine();
    let _undo = Undo;
    let words = ["-m", "--propagation", "private", "--kill-child=KILL", "--fork"];
    let mut up = Command::new("unshare")
        .args(words)
        .args([env!("CARGO_BIN_EXE_eke"), "up", "--agent", "none", "--backend", "zram", "--size", "64M"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("zram swap", || shown().iter().any(|path| path.contains("zram")));
    up.kill().unwrap();
    up.wait().unwrap();
    let down = eke(&["down"]);
    assert_eq!(down.status, Some(0), "{}", down.shown());
    assert_eq!(machine(), before);
}
