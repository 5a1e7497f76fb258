//! All clients at once: the agent stays small, and all programs end on a signal.

use std::process::Child;
use std::time::Duration;

use eke_testkit::real::{no_program, skip};
use eke_testkit::wait::wait_for;
use rustix::process::{Pid, Signal, kill_process};

use crate::browser::Browser;
use crate::common::eke;
use crate::common::terminal::Terminal;
use crate::environment::{Environment, Process, get, port_of};

/// The number of rounds of requests, and their interval.
const ROUNDS: usize = 30;
const PAUSE: Duration = Duration::from_millis(200);

/// A value of `/proc/PID/status` (proc_pid_status(5)) in KiB.
fn kib(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Sends SIGTERM and returns the exit status.
fn told_to_end(process: &mut Child) -> Option<i32> {
    kill_process(Pid::from_child(process), Signal::TERM).unwrap();
    eke_testkit::program::end_of(process).code()
}

/// The page in a real browser, if there is one.
fn page_of(address: &str) -> Option<Browser> {
    if let Some(why) = no_program(&["chromium"]) {
        skip("all_clients_at_once_are_served_by_a_small_agent: the page is read without a browser", &why);
        return None;
    }
    let mut browser = Browser::start();
    browser.go_to(address);
    Some(browser)
}

/// The limit also fits unoptimised builds, which are larger than the installed one.
#[test]
fn all_clients_at_once_are_served_by_a_small_agent() {
    let environment = Environment::new();
    let mut agent = environment.agent();
    let pid = agent.0.id();
    let top = Terminal::start(&format!(
        "exec {} --root {} top --every 500ms",
        env!("CARGO_BIN_EXE_eke"),
        environment.root()
    ));
    let Some(mut top) = top else {
        return skip("all_clients_at_once_are_served_by_a_small_agent", "there is no script(1)");
    };
    let (mut dash, page) = environment.dash("127.0.0.1:0");
    let (mut metrics, scraped) = environment.serve(&["metrics", "--listen", "127.0.0.1:0"]);
    let mut browser = page_of(&page);

    top.shows(&format!("agent {pid}, up"));
    let mut highest = 0;
    for _ in 0..ROUNDS {
        assert_eq!(get(port_of(&page), "/now", &["Host: localhost"]).status, 200);
        let scrape = get(port_of(&scraped), "/metrics", &["Host: localhost"]);
        assert!(scrape.status == 200 && scrape.body.contains("\neke_agent_up 1\n"), "{}", scrape.body);
        let status = eke(&["--root", environment.root(), "status"]);
        assert!(status.stdout.contains(&format!("agent {pid} up")), "{}", status.shown());
        highest = highest.max(kib(pid, "VmRSS"));
        std::thread::sleep(PAUSE);
    }
    top.shows(&format!("agent {pid}, up"));
    if let Some(browser) = &mut browser {
        browser.until("#state-text", "the agent's", |t| t.contains(&format!("process {pid}")));
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }
    let peak = kib(pid, "VmHWM");
    println!(
        "the agent, with eke top, a page, a scraper and eke status: {highest} KiB, at its highest {peak} KiB"
    );
    assert!(highest > 0 && peak < 8 << 10, "{peak} KiB");

    drop(browser);
    top.press(b"q");
    assert_eq!(top.ended(), Some(0));
    for Process(process) in [&mut dash, &mut metrics, &mut agent] {
        assert_eq!(told_to_end(process), Some(0));
    }
    let socket = environment.machine.dir().join("run/eke/agent.sock");
    wait_for("the socket is gone", || !socket.exists());
}
