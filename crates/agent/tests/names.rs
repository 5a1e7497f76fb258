//! Who learns the name of a program that the guard ended: root and the program's user, by the kernel's word (SO_PEERCRED).

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

mod common;

use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use common::{Agent, Connection, STATUS, connect_as};
use eke_apply::state;
use eke_model::applied::Applied;
use eke_model::snapshot::{Event, NOBODY, Response, Snapshot};
use eke_testkit::fake_kernel::FakeKernel;
use eke_testkit::real::skip;
use eke_testkit::wait::wait_for;

const WATCH: &str = r#"{"ask":"watch"}"#;
const OWNER: u32 = 1000;
/// Each reader, and whether it may know the name.
const READERS: [(u32, bool); 4] = [(0, true), (OWNER, true), (1001, false), (NOBODY, false)];

/// A machine of 1000 MiB with a plan of eke's and a program of this user.
fn with_a_leak(uid: u32) -> Arc<FakeKernel> {
    let machine = FakeKernel::new();
    machine.put("proc/20/stat", &format!("20 (leak) S 1 20 7 0 -1 0 {}20 0 0\n", "0 ".repeat(12)));
    machine.put(
        "proc/20/status",
        &format!(
            "State:\tS (sleeping)\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nRssAnon:\t512000 kB\nVmSwap:\t0 kB\n"
        ),
    );
    machine.put("proc/20/oom_score_adj", "0\n");
    machine.put("proc/20/cgroup", "0::/user.slice/user-1000.slice/session-1.scope\n");
    machine.put("etc/eke/eke.toml", "[agent]\ntick_s = 1\n[guard]\nenabled = \"on\"\n");
    available(&machine, 900);
    state::save(&machine.root(), state::APPLIED, &Applied::default()).unwrap();
    // Other users connect below it.
    std::fs::set_permissions(machine.dir(), Permissions::from_mode(0o755)).unwrap();
    machine
}

fn available(machine: &FakeKernel, mib: u64) {
    let (all, free, used) = (1_000 << 10, mib << 10, (1_000 - mib) << 10);
    let text =
        format!("MemTotal: {all} kB\nMemFree: {free} kB\nMemAvailable: {free} kB\nAnonPages: {used} kB\n");
    machine.put("proc/meminfo", &text);
}

fn connection(agent: &Agent, uid: u32) -> Connection {
    Connection(BufReader::new(connect_as(uid, &agent.socket).unwrap()))
}

/// The next line as it came.
fn received(connection: &mut Connection) -> String {
    let mut line = String::new();
    connection.0.read_line(&mut line).unwrap();
    line
}

fn asked(connection: &mut Connection, request: &str) -> String {
    connection.send(format!("{request}\n").as_bytes());
    received(connection)
}

fn event(line: &str) -> Event {
    match serde_json::from_str(line).unwrap() {
        Response::Event(event) => event,
        other => panic!("{other:?}"),
    }
}

fn snapshot(line: &str) -> Snapshot {
    match serde_json::from_str(line).unwrap() {
        Response::Status(snapshot) => *snapshot,
        other => panic!("{other:?}"),
    }
}

#[test]
fn root_and_its_user_learn_the_name_of_an_ended_program_and_no_other_user() {
    if !rustix::process::geteuid().is_root() {
        return skip("root_and_its_user_learn_the_name_of_an_ended_program", "not root");
    }
    let machine = with_a_leak(OWNER);
    let agent = Agent::on(machine.clone());
    let mut watching: Vec<Connection> = READERS.map(|(uid, _)| connection(&agent, uid)).into();
    for connection in &mut watching {
        assert_eq!(asked(connection, WATCH), "{\"answer\":\"done\"}\n");
    }
    available(&machine, 5);
    wait_for("the end of the program", || !agent.connect().status().ended.is_empty());
    for ((uid, knows), at_once) in READERS.into_iter().zip(&mut watching) {
        let mut later = connection(&agent, uid);
        let status = asked(&mut later, STATUS);
        asked(&mut later, WATCH);
        for line in [received(at_once), received(&mut later)] {
            let event = event(&line);
            assert!(event.text.starts_with("Ended: process 20 of user 1000"), "{line}");
            assert_eq!(
                (event.name(), line.contains("leak")),
                (knows.then_some("leak"), knows),
                "{uid}: {line}"
            );
        }
        let seen = snapshot(&status);
        assert_eq!(seen.ended.len(), 1, "{uid}: {status}");
        assert_eq!(seen.ended[0].program.as_ref().map(|program| program.uid), Some(OWNER), "{uid}");
        assert_eq!(
            (seen.ended[0].name(), status.contains("leak")),
            (knows.then_some("leak"), knows),
            "{uid}: {status}"
        );
    }
    agent.end();
}

#[test]
fn of_a_program_of_root_root_alone_learns_the_name() {
    if !rustix::process::geteuid().is_root() {
        return skip("of_a_program_of_root_root_alone_learns_the_name", "not root");
    }
    let machine = with_a_leak(0);
    let agent = Agent::on(machine.clone());
    available(&machine, 5);
    wait_for("the end of the program", || !agent.connect().status().ended.is_empty());
    for (uid, knows) in [(0, true), (OWNER, false), (0, true)] {
        assert_eq!(asked(&mut connection(&agent, uid), STATUS).contains("leak"), knows, "{uid}");
    }
    agent.end();
}
