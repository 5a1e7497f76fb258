//! `eke top` on a terminal (script(1)): the screen, with and without an agent, and the end.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use common::terminal::Terminal;
use common::{build_agent, eke};
use eke_testkit::fake_kernel::FakeKernel;
use eke_testkit::program::KilledOnDrop;
use eke_testkit::real::skip;
use rustix::process::{Pid, Signal, kill_process};

/// `eke top`; the shell execs eke, so that `top.pid` has eke's number.
fn start(root: &Path, options: &str) -> Option<Terminal> {
    let (eke, pid) = (env!("CARGO_BIN_EXE_eke"), root.join("top.pid"));
    Terminal::start(&format!(
        "echo $$ >{}; exec {eke} --root {} top {options}",
        pid.display(),
        root.display()
    ))
}

/// The agent on a root directory; it ends with the test.
struct Agent(KilledOnDrop);

impl Agent {
    fn start(root: &Path) -> Self {
        build_agent();
        let program = Path::new(env!("CARGO_BIN_EXE_eke")).with_file_name("eke-agent");
        let mut agent = Command::new(program);
        agent.args(["--root".as_ref(), root.as_os_str()]).stdin(Stdio::null()).stderr(Stdio::null());
        Self(KilledOnDrop(agent.process_group(0).spawn().expect("the agent starts")))
    }
}

fn machine() -> Arc<FakeKernel> {
    let machine = FakeKernel::new();
    machine.put("run/eke/.keep", "");
    machine.put(
        "proc/pressure/memory",
        "some avg10=24.10 avg60=12.00 avg300=0.00 total=1\nfull avg10=3.20 avg60=1.10 avg300=0.00 total=1\n",
    );
    machine
}

const NO_SCRIPT: &str = "there is no script(1)";

#[test]
fn it_says_who_answers_and_misses_an_agent_that_goes() {
    let machine = machine();
    let Some(mut terminal) = start(machine.dir(), "--every 500ms") else {
        return skip("it_says_who_answers_and_misses_an_agent_that_goes", NO_SCRIPT);
    };
    let shown = terminal.shows("no agent runs; eke top samples the machine itself");
    assert!(shown.contains("short of: memory") && shown.contains("24.1 %"), "{shown}");
    assert!(shown.contains("█ anonymous 195 MiB"), "{shown}");
    let agent = Agent::start(machine.dir());
    terminal.shows(&format!("agent {}, up", agent.0.0.id()));
    terminal.shows("No plan is applied: the agent watches and changes nothing.");
    drop(agent);
    let shown = terminal.shows("agent gone for");
    assert!(shown.contains("decisions: the agent's last"), "{shown}");
    let agent = Agent::start(machine.dir());
    terminal.shows(&format!("agent {}, up", agent.0.0.id()));
    terminal.press(b"?");
    terminal.shows("by the kernel's PSI");
    terminal.press(b"?p");
    terminal.shows("PAUSED");
    terminal.press(b"q");
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn ctrl_c_and_signals_leave_the_terminal_as_it_was() {
    let machine = machine();
    for signal in [None, Some(Signal::TERM), Some(Signal::INT)] {
        let Some(mut terminal) = start(machine.dir(), "") else {
            return skip("ctrl_c_and_signals_leave_the_terminal_as_it_was", NO_SCRIPT);
        };
        terminal.shows("short of: memory");
        match signal {
            None => terminal.press(&[3]),
            Some(signal) => {
                let pid: i32 = machine.root().read("top.pid").unwrap().trim().parse().unwrap();
                kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
            }
        }
        assert_eq!(terminal.ended(), Some(0), "{signal:?}");
    }
}

#[test]
fn the_console_gets_ascii() {
    let machine = machine();
    let Some(mut terminal) = start(machine.dir(), "--ascii") else {
        return skip("the_console_gets_ascii", NO_SCRIPT);
    };
    let shown = terminal.shows("# anonymous 195 MiB");
    assert!(shown.is_ascii(), "{shown}");
    terminal.press(b"q");
    assert_eq!(terminal.ended(), Some(0));
}

/// Without an alternate screen the old text does not show through, and nothing is left at the end.
#[test]
fn the_console_has_one_screen_for_all() {
    let machine = machine();
    let eke = format!("{} --root {}", env!("CARGO_BIN_EXE_eke"), machine.dir().display());
    let lines = "for i in 1 2 3 4 5 6 7 8 9; do echo of-before-of-before-of-before-of-before; done";
    let Some(mut terminal) = Terminal::console(&format!("{lines}; sleep 0.2; exec {eke} top")) else {
        return skip("the_console_has_one_screen_for_all", NO_SCRIPT);
    };
    let shown = terminal.shows("# anonymous 195 MiB");
    assert!(shown.is_ascii() && !shown.contains("before"), "{shown}");
    terminal.press(b"q");
    assert_eq!(terminal.ended(), Some(0));
    assert_eq!(terminal.text(), "", "the screen is left empty");
}

#[test]
fn what_is_no_terminal_is_told_what_to_say_instead() {
    insta::assert_snapshot!("no_terminal", eke(&["top"]).shown());
    insta::assert_snapshot!("no_json", eke(&["top", "--json"]).shown());
    insta::assert_snapshot!("too_fast", eke(&["top", "--every", "1ms"]).shown());
}
