//! Progress of long commands: on a terminal only.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

use common::terminal::Terminal;
use common::{build_others, eke};
use eke_testkit::real::skip;

#[test]
fn a_terminal_shows_how_far_it_is_and_then_the_result_alone() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.sqlite");
    build_others();
    let eke = env!("CARGO_BIN_EXE_eke");
    let command = format!("{eke} record --system --for 4s --output {}", file.display());
    let Some(mut terminal) = Terminal::start(&command) else {
        return skip("a_terminal_shows_how_far_it_is_and_then_the_result_alone", "there is no script(1)");
    };
    let shown = terminal.shows("] recording: ");
    assert!(shown.contains(" left"), "{shown}");
    let shown = terminal.shows("samples");
    assert!(!shown.contains("recording: "), "{shown}");
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn what_is_no_terminal_gets_the_result_alone() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.sqlite");
    let ran = eke(&["record", "--system", "--for", "2s", "--output", file.to_str().unwrap()]);
    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert!(ran.stderr.starts_with("eke record: ended after") && !ran.stderr.contains('\r'), "{ran:?}");
}
