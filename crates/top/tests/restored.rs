//! The terminal after a panic: left as it was found, with the message on it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

use std::process::{Command, Stdio};

use eke_testkit::real::skip;
use eke_top::terminal::Screen;

const CHILD: &str = "EKE_TOP_TEST_PANICS";

/// Started on a terminal by the other test; does nothing by itself.
#[test]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let _screen = Screen::open().unwrap();
    std::thread::spawn(|| panic!("in a thread")).join().unwrap_err();
    // A release build has aborted by now: nothing after this may be needed.
    std::process::abort();
}

#[test]
fn a_panic_in_any_thread_leaves_the_terminal_as_it_was() {
    let this = std::env::current_exe().unwrap();
    let command = format!("stty -echo; {CHILD}=1 {} --exact child --nocapture; stty -a", this.display());
    let output = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .output();
    let Ok(output) = output else {
        return skip("a_panic_in_any_thread_leaves_the_terminal_as_it_was", "there is no script(1)");
    };
    let shown = String::from_utf8_lossy(&output.stdout);
    let at = |what: &str| shown.find(what).unwrap_or_else(|| panic!("no {what:?} in {shown:?}"));
    assert!(at("\u{1b}[?1049h") < at("\u{1b}[?1049l"));
    assert!(at("\u{1b}[?1049l") < at("in a thread"), "the message is on the screen that goes");
    assert!(at("\u{1b}[?25l") < at("\u{1b}[?25h"));
    assert!(shown.contains(" icanon ") && !shown.contains("-icanon"), "raw mode stayed: {shown}");
}
