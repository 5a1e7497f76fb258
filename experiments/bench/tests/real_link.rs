//! `eke bench link` for real: two network namespaces and an ssh server, some seconds.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Stdio};

use common::{command, until_begun};
use eke_bench_desktop::desktop::bare::Screen;
use eke_testkit::real::{lock_machine, no_program, skip};
use eke_testkit::sshd;
use eke_testkit::wait::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Asked with the machine held: two tests that try the same name at once are in each other's way.
fn lacks() -> Option<String> {
    sshd::lacks().or_else(|| no_program(&["ip", "tc", "ss"])).or_else(|| {
        let made = Command::new("ip").args(["netns", "add", "eketest"]).stderr(Stdio::null()).status();
        let _ = Command::new("ip").args(["netns", "del", "eketest"]).stderr(Stdio::null()).status();
        (!made.is_ok_and(|s| s.success())).then(|| "no network namespaces here".to_owned())
    })
}

fn bench(more: &[&str]) -> Command {
    let base = ["link", "--quick", "--links", "100m", "--cpus", "full", "--rounds", "2", "--json"];
    command(&[&base[..], more].concat())
}

/// Namespaces, directories, and processes that name them.
fn traces() -> Vec<String> {
    let list = |dir: &str| -> Vec<String> {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect()
    };
    let mut found = list("/run/netns");
    found.extend(list("/run/eke"));
    found.retain(|name| name.starts_with("ekelink") || name.starts_with("link-"));
    for pid in list("/proc") {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains("/run/eke/link-") {
            found.push(line);
        }
    }
    found
}

/// An experiment that has got as far as its server.
fn begun() -> Child {
    let mut child = bench(&["--no-x11"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // its own: those of one that was killed live on until they are swept
    let own = format!("/run/eke/link-{}-", child.id());
    let is_begun =
        until_begun(&mut child, || traces().iter().any(|t| t.starts_with("ssh ") && t.contains(&own)));
    if !is_begun {
        let message = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
        panic!("it ended before ssh began: {:?}: {message}", traces());
    }
    child
}

/// The frames of an X session go through ciphers, compressed and without ssh; the machine's own displays keep their sockets.
#[test]
fn every_cipher_is_beside_the_choice_and_nothing_stays() {
    let _machine = lock_machine();
    if let Some(why) = lacks() {
        return skip("every_cipher_is_beside_the_choice", &why);
    }
    let no_screen = no_program(&["Xvfb", "xauth"]);
    no_screen.iter().for_each(|why| skip("every_cipher_is_beside_the_choice: an X session", why));
    let display = no_screen.is_none().then(Display::start);
    let base = if display.is_some() { &[][..] } else { &["--no-x11"] };
    let ran = eke_testkit::program::ran(&mut bench(base));
    assert_eq!(ran.status, Some(0), "{ran:?}");
    let report = ran.json();
    for cipher in ["aes128-gcm", "aes256-gcm", "aes128-ctr + umac-64-etm, the study's"] {
        assert!(median(&report, "throughput", cipher) > 0.0, "{cipher}");
    }
    // the bucket is 128 kB, and the rate is 12.5 MB/s with everything around the bytes
    let eke = median(&report, "throughput", "eke");
    assert!(eke > 0.0 && eke < 14.0, "{eke}");
    assert!(report["notes"].to_string().contains("100 Mb/s, full: eke chose "), "{report}");
    if let Some(display) = display {
        for variant in ["eke", "aes128-gcm", "eke's, compressed", "without ssh"] {
            assert!(median(&report, "X session", variant) > 0.0, "{variant}: {}", report["notes"]);
        }
        assert_eq!(display.socket_inode(), display.before, "the display of the machine is another one");
    }
    assert_eq!(traces(), Vec::<String>::new());
}

fn median(report: &Value, metric: &str, variant: &str) -> f64 {
    let rows = report["rows"].as_array().unwrap();
    let row = rows.iter().find(|r| r["variant"] == variant && r["metric"] == metric);
    row.and_then(|r| r["median"].as_f64()).unwrap_or_else(|| panic!("no {metric} of {variant}: {report}"))
}

/// A display that the machine has already.
struct Display {
    screen: Screen,
    before: u64,
}

impl Display {
    fn start() -> Self {
        let mut display = Self { screen: Screen::start().unwrap(), before: 0 };
        display.before = display.socket_inode();
        display
    }

    fn socket_inode(&self) -> u64 {
        let socket = format!("/tmp/.X11-unix/X{}", self.screen.number());
        std::fs::metadata(&socket).unwrap().ino()
    }
}

#[test]
fn ctrl_c_ends_it_and_the_next_one_sweeps_what_kill_9_left() {
    let _machine = lock_machine();
    if let Some(why) = lacks() {
        return skip("ctrl_c_ends_it", &why);
    }
    let mut killed = begun();
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(traces().iter().any(|t| t.starts_with("ekelink")), "what a killed one leaves");
    let mut interrupted = begun();
    let first = interrupted.id().to_string();
    assert!(
        traces().iter().filter(|t| t.starts_with("ekelink")).all(|t| t.contains(&first)),
        "{:?}",
        traces()
    );
    kill_process(Pid::from_child(&interrupted), Signal::INT).unwrap();
    let status = eke_testkit::program::end_of(&mut interrupted);
    let message = std::io::read_to_string(interrupted.stderr.take().unwrap()).unwrap();
    assert!(status.code() == Some(1) && message.contains("interrupted"), "{message}");
    wait_for("all traces to go", || {
        let left = traces();
        if left.is_empty() { Ok(()) } else { Err(left.join(", ")) }
    });
}
