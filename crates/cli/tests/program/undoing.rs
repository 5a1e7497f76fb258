//! What is undone, and what is said about it.

use std::path::Path;
use std::process::Stdio;

use eke_apply::files::{self, Change};
use eke_apply::session::Session;
use eke_apply::{revert, state};
use eke_linux::Root;
use eke_model::applied::{Applied, Bounds};
use eke_model::step::{Plan, PlannedStep, Reason, Step};
use eke_swap::retrain::RECORD;
use eke_testkit::program::output_of;
use eke_testkit::tree::put;
use eke_testkit::wait::wait_for;

use crate::common::{Ran, command, eke};
use crate::machine::machine_without_steps;

const SWAPPINESS: &str = "proc/sys/vm/swappiness";
const LTSP: &str = "etc/ltsp/ltsp.conf";

/// A machine on which eke, whose process has ended, set this value; before it was 60. All values have two digits: a file does not take a shorter one
/// as /proc does.
fn with_swappiness(value: &str) -> tempfile::TempDir {
    let root = machine_without_steps(false);
    put(root.path(), SWAPPINESS, "60\n");
    let mut session = Session::open(&Root::at(root.path()), "swap").unwrap();
    session.apply(&set_swappiness(value)).unwrap();
    root
}

fn set_swappiness(value: &str) -> PlannedStep {
    PlannedStep { step: Step::set("vm.swappiness", value), reason: Reason::new("a test") }
}

fn swappiness(root: &Path) -> String {
    std::fs::read_to_string(root.join(SWAPPINESS)).unwrap().trim().to_owned()
}

#[test]
fn down_calls_everything_as_before_only_if_nothing_was_left_alone() {
    for (now, last) in [("80", "Everything is as it was"), ("10", "Everything else is as it was")] {
        let root = with_swappiness("80");
        put(root.path(), SWAPPINESS, now);
        let down = eke(&["--root", root.path().to_str().unwrap(), "down"]);
        assert_eq!(down.status, Some(0), "{}", down.shown());
        let end = format!("{last} before eke.");
        assert_eq!(down.stdout.lines().last(), Some(end.as_str()), "{}", down.shown());
        assert_eq!(down.stdout.contains("left alone: "), now == "10", "{}", down.shown());
    }
}

#[test]
fn down_forgets_what_was_said_of_its_devices() {
    let root = with_swappiness("80");
    put(root.path(), RECORD, r#"{"outcome":"Swap goes to zram2 first."}"#);
    let down = eke(&["--root", root.path().to_str().unwrap(), "down"]);
    assert!(down.status == Some(0) && !root.path().join(RECORD).exists(), "{}", down.shown());
}

/// Clients read ltsp.conf in ltsp.img.
#[test]
fn an_undo_of_the_clients_ciphers_packs_their_image_again() {
    for verb in [&["link", "--undo"][..], &["down"]] {
        let root = machine_without_steps(false);
        put(root.path(), "usr/sbin/ltsp", "");
        put(root.path(), LTSP, "[clients]\n");
        let change = Change::text(LTSP, "[clients]\nSSH_OPTIONS=x\n");
        files::apply(&Root::at(root.path()), "link", &[change], "a test").unwrap();
        let undone = eke(&[&["--root", root.path().to_str().unwrap()], verb].concat());
        assert_eq!(std::fs::read_to_string(root.path().join(LTSP)).unwrap(), "[clients]\n");
        let is_packed = undone.stdout.contains("to run on that system: ltsp initrd (writes /etc/ltsp into");
        assert!(is_packed, "{verb:?}: {}", undone.shown());
    }
}

/// Both find the leftovers of a killed one; the first undoes them and applies its plan while the second waits for the journal.
#[test]
fn the_second_up_does_not_undo_what_the_first_has_applied_meanwhile() {
    let dir = with_swappiness("70");
    let root = Root::at(dir.path());
    let mut first = Session::open(&root, "swap").unwrap();
    let second = command(&["--root", dir.path().to_str().unwrap(), "up", "--agent", "none"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lock = dir.path().join("run/eke/lock");
    wait_for("the second to wait for the journal", || {
        let files = std::fs::read_dir(format!("/proc/{}/fd", second.id())).unwrap().flatten();
        files.into_iter().any(|file| std::fs::read_link(file.path()).is_ok_and(|at| at == lock))
    });
    revert::all(&root, first.journal()).unwrap();
    first.apply(&set_swappiness("90")).unwrap();
    let plan = Plan { steps: vec![set_swappiness("90")], ..Plan::default() };
    let applied = Applied { unix_s: 1, plans: vec![plan], bounds: Bounds::default() };
    state::save(&root, state::APPLIED, &applied).unwrap();
    drop(first);
    let ran: Ran = output_of(second).into();
    assert!(ran.status == Some(1) && ran.stderr.contains("eke is up already"), "{}", ran.shown());
    assert_eq!(swappiness(dir.path()), "90", "{}", ran.shown());
}
