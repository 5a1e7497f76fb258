//! Tests of [`super::wrappers`].

use std::time::Duration;

use proptest::prelude::*;

use super::wrappers::{MOST, USERS};
use super::*;
use crate::file_set::{FileSet, Kind, Stamp, Touched, UsedBy};
use crate::launch::{Launch, LaunchEnd};
use crate::pages::{Pages, Span};
use crate::program::{Program, ProgramId};

fn id(name: &str) -> ProgramId {
    Program::of_exe(name).id()
}

fn finished(name: &str, pages: u64, started: &[&str], became: bool, ended: LaunchEnd) -> Finished {
    let file = Touched {
        path: "/f".into(),
        kind: Kind::File,
        stamp: Stamp::default(),
        pages: Pages::from_iter(Span::new(0, pages)),
        stale: Pages::default(),
        weight: 1.0,
        used_by: UsedBy::Unknown,
    };
    let launch = Launch {
        program: Program::of_exe(name),
        uid: 0,
        began_ns: 0,
        took: Duration::ZERO,
        ended,
        set: FileSet { files: vec![file] },
        cold_bytes: 0,
    };
    let started = started.iter().map(|name| id(name)).collect();
    let has_ended = ended == LaunchEnd::Exited;
    let (should_store, cold, bytes_after_start) = (true, Vec::new(), 0);
    Finished { id: LaunchId(1), launch, should_store, started, became, has_ended, bytes_after_start, cold }
}

#[test]
fn a_program_that_becomes_another_is_a_wrapper() {
    let mut wrappers = Wrappers::default();
    let env = finished("env", 100, &["gedit"], true, LaunchEnd::Exited);
    assert_eq!(wrappers.learn(&env, &mut |_| 0), [id("env")]);
    assert_eq!(wrappers.learn(&env, &mut |_| 0), [], "known already");
    assert!(wrappers.is_wrapper(id("env"), 0) && !wrappers.is_wrapper(id("gedit"), 0));
}

#[test]
fn a_large_program_that_becomes_another_and_works_on_in_a_child_is_none() {
    let mut wrappers = Wrappers::default();
    let image = finished("image", 25_600, &["AppRun"], true, LaunchEnd::Quiet);
    assert_eq!(wrappers.learn(&image, &mut |_| 0), []);
}

#[test]
fn a_small_program_that_starts_a_larger_one_is_a_wrapper() {
    let quiet = |name, pages, started: &[&str]| finished(name, pages, started, false, LaunchEnd::Quiet);
    let mut wrappers = Wrappers::default();
    assert_eq!(wrappers.learn(&quiet("sh", 300, &["gedit"]), &mut |_| 0), [], "not known yet");
    assert_eq!(wrappers.learn(&quiet("gedit", 9000, &[]), &mut |_| 0), [id("sh")]);
    assert_eq!(wrappers.learn(&quiet("timeout", 200, &["gedit"]), &mut |_| 9000 * 4096), [id("timeout")]);
    assert_eq!(
        wrappers.learn(&quiet("gedit", 9000, &["git"]), &mut |_| 400 * 4096),
        [],
        "it starts a helper"
    );
    let session = quiet("session", 3000, &["gedit"]);
    assert_eq!(wrappers.learn(&session, &mut |_| 9000 * 4096), [], "a program of its own weight");
    let launcher = finished("launcher", 3000, &["gedit"], false, LaunchEnd::Exited);
    assert_eq!(wrappers.learn(&launcher, &mut |_| 9000 * 4096), [id("launcher")], "it ends first");
}

#[test]
fn a_small_program_that_works_on_beside_a_larger_one_is_none() {
    let is_wrapper = |bytes_after_start, became, ended| {
        let vim = finished("vim", 1500, &["clangd"], became, ended);
        let mut wrappers = Wrappers::default();
        wrappers.learn(&Finished { bytes_after_start, ..vim }, &mut |_| 90 << 20);
        wrappers.is_wrapper(id("vim"), 0)
    };
    assert!(!is_wrapper(1 << 20, false, LaunchEnd::Quiet));
    assert!(is_wrapper(64 << 10, false, LaunchEnd::Quiet), "it waits");
    assert!(is_wrapper(1 << 20, false, LaunchEnd::Exited) && is_wrapper(1 << 20, true, LaunchEnd::Quiet));
}

#[test]
fn a_program_that_starts_nothing_any_more_is_no_wrapper() {
    let mut wrappers = Wrappers::default();
    wrappers.learn(&finished("x", 1, &["gedit"], true, LaunchEnd::Exited), &mut |_| 0);
    for is_wrapper in [true, true, false] {
        wrappers.learn(&finished("x", 1, &[], false, LaunchEnd::Exited), &mut |_| 0);
        assert_eq!(wrappers.is_wrapper(id("x"), 0), is_wrapper);
    }
    wrappers.learn(&finished("x", 1, &["gedit"], true, LaunchEnd::Exited), &mut |_| 0);
    wrappers.forget(id("x"));
    assert!(!wrappers.is_wrapper(id("x"), 0));
}

fn by(user: u32, mut finished: Finished) -> Finished {
    finished.launch.uid = user;
    finished
}

#[test]
fn one_user_makes_no_wrapper_for_others() {
    let mut wrappers = Wrappers::default();
    let becomes = finished("gedit", 100, &["x"], true, LaunchEnd::Exited);
    let starts = finished("gimp", 100, &["large"], false, LaunchEnd::Quiet);
    for user in [1001, 1001, 1001] {
        wrappers.learn(&by(user, becomes.clone()), &mut |_| 0);
        wrappers.learn(&by(user, starts.clone()), &mut |_| 1 << 30);
    }
    for name in ["gedit", "gimp"] {
        assert!(wrappers.is_wrapper(id(name), 1001), "for that user");
        assert!(!wrappers.is_wrapper(id(name), 1000) && !wrappers.is_wrapper_for_all(id(name)), "{name}");
    }
    assert_eq!(wrappers.learn(&by(1002, becomes.clone()), &mut |_| 0), [id("gedit")]);
    assert!(wrappers.is_wrapper(id("gedit"), 1000) && wrappers.is_wrapper_for_all(id("gedit")), "two users");
    wrappers.learn(&starts, &mut |_| 1 << 30);
    assert!(wrappers.is_wrapper(id("gimp"), 1000), "root");
}

#[test]
fn one_user_takes_no_room_of_others() {
    let mut wrappers = Wrappers::default();
    let of = |user, name: &str| by(user, finished(name, 1, &["gedit"], true, LaunchEnd::Exited));
    (0..10).for_each(|n| drop(wrappers.learn(&of(1000, &format!("ours{n}")), &mut |_| 0)));
    (0..3 * MOST).for_each(|n| drop(wrappers.learn(&of(1001, &format!("theirs{n}")), &mut |_| 0)));
    assert_eq!(wrappers.programs.values().map(Vec::len).sum::<usize>(), MOST);
    assert!((0..10).all(|n| wrappers.is_wrapper(id(&format!("ours{n}")), 1000)));
    (0..10).for_each(|user| drop(wrappers.learn(&of(user, "env"), &mut |_| 0)));
    assert_eq!(wrappers.programs[&id("env")].len(), USERS);
}

#[test]
fn only_the_names_behind_env_are_outdated() {
    let named = |exe: &str, script: Option<&str>| Program { exe: exe.into(), script: script.map(Into::into) };
    assert!(wrappers::is_outdated(&named("/usr/bin/env", Some("okular"))));
    assert!(!wrappers::is_outdated(&named("/usr/bin/env", None)));
    assert!(!wrappers::is_outdated(&named("/usr/bin/python3", Some("/usr/bin/meld"))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn it_is_bounded_and_comes_back(starts in proptest::collection::vec((0u16..2000, 0u16..9, any::<bool>()), 0..700)) {
        let mut wrappers = Wrappers::default();
        for (program, started, became) in starts {
            let (name, started) = (format!("p{program}"), format!("s{started}"));
            wrappers.learn(&finished(&name, 5, &[&started], became, LaunchEnd::Quiet), &mut |_| 1 << 20);
        }
        let bytes = wrappers.to_state().unwrap();
        prop_assert!(bytes.len() < 200_000);
        prop_assert_eq!(Wrappers::from_state(&bytes), wrappers);
    }

    #[test]
    fn foreign_bytes_are_no_wrappers(bytes in proptest::collection::vec(0u8.., 0..200)) {
        prop_assert_eq!(Wrappers::from_state(&bytes), Wrappers::default());
    }
}
