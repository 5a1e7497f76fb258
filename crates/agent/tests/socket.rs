//! A whole agent and its clients: well-behaved, slow, silent, malformed, too many.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

mod common;

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use common::{Agent, ManualClock, RELOAD, STATUS, STOP, connect};
use eke_agent::Ended;
use eke_agent::client::PATIENCE_MS;
use eke_agent::clients::MOST;
use eke_apply::state;
use eke_model::applied::Applied;
use eke_model::snapshot::Response;
use eke_model::step::Plan;
use eke_testkit::fake_kernel::FakeKernel;
use eke_testkit::real::skip;
use eke_testkit::wait::wait_for;

const SOCKET_OF_CLIENT: &str = "EKE_TEST_SOCKET";

#[test]
fn a_client_may_ask_again_and_again_and_a_signal_ends_the_agent() {
    let agent = Agent::start();
    let mut connection = agent.connect();
    let first = connection.status();
    assert_eq!(first.agent.as_ref().map(|a| a.pid), Some(std::process::id()));
    assert_eq!((first.applied, first.backend.as_str()), (false, "none"));
    assert_eq!(connection.status().model.ram, first.model.ram);
    assert_eq!(agent.end(), Ended::BySignal);
}

#[test]
fn a_client_that_watches_gets_important_events_and_may_be_silent() {
    let machine = FakeKernel::new();
    let clock = Arc::new(ManualClock::default());
    let agent = Agent::with_clock(machine, clock.clone());
    let mut connection = agent.connect();
    assert_eq!(connection.ask(r#"{"ask":"watch"}"#), Response::Done);
    clock.0.fetch_add(10 * PATIENCE_MS, Ordering::SeqCst);
    agent.ask(STATUS);
    assert!(connection.is_open(), "a watching client has no deadline");
    std::fs::remove_file(agent.machine.dir().join("proc/meminfo")).unwrap();
    clock.0.fetch_add(10 * PATIENCE_MS, Ordering::SeqCst);
    agent.ask(STATUS);
    match connection.receive() {
        Some(Response::Event(event)) => {
            assert!(event.important && event.text.starts_with("The machine cannot be sampled"), "{event:?}");
        }
        other => panic!("{other:?}"),
    }
    let mut later = agent.connect();
    assert_eq!(later.ask(r#"{"ask":"watch"}"#), Response::Done);
    assert!(matches!(later.receive(), Some(Response::Event(_))), "a later client gets what is kept");
    agent.end();
}

#[test]
fn two_requests_at_once_get_two_answers() {
    let agent = Agent::start();
    let mut connection = agent.connect();
    connection.send(format!("{STATUS}\n{STATUS}\n").as_bytes());
    assert!(matches!(connection.receive(), Some(Response::Status(_))));
    assert!(matches!(connection.receive(), Some(Response::Status(_))));
    agent.end();
}

#[test]
fn a_client_that_closes_its_sending_half_gets_its_answer() {
    let agent = Agent::start();
    let mut stream = UnixStream::connect(&agent.socket).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    stream.write_all(format!("{STATUS}\n").as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with(r#"{"answer":"status""#) && answer.ends_with("}\n"), "{answer}");
    agent.end();
}

#[test]
fn garbage_is_refused_and_the_client_may_try_again() {
    let agent = Agent::start();
    let mut connection = agent.connect();
    assert!(matches!(connection.ask("\u{0}{]"), Response::Refused { needs_root: false, .. }));
    connection.status();
    agent.end();
}

#[test]
fn a_request_without_end_is_refused_and_closed() {
    let agent = Agent::start();
    let mut connection = agent.connect();
    connection.send(&[b'x'; 4097]);
    let Some(Response::Refused { reason, .. }) = connection.receive() else { panic!("not refused") };
    assert!(reason.contains("4096 bytes"), "{reason}");
    assert_eq!(connection.receive(), None);
    agent.end();
}

#[test]
fn slow_and_silent_clients_are_dropped_and_delay_nobody() {
    let clock = Arc::new(ManualClock::default());
    let agent = Agent::with_clock(FakeKernel::new(), clock.clone());
    let (mut silent, mut slow) = (agent.connect(), agent.connect());
    slow.send(b"{\"ask\"");
    // The clock stands still, so no answer waited for another client's deadline.
    agent.connect().status();
    clock.0.fetch_add(PATIENCE_MS - 1, Ordering::SeqCst);
    agent.connect().status();
    assert!(silent.is_open() && slow.is_open());
    clock.0.fetch_add(1, Ordering::SeqCst);
    agent.connect().status();
    assert_eq!((silent.receive(), slow.receive()), (None, None));
    agent.end();
}

#[test]
fn a_client_that_never_reads_does_not_stall_the_others() {
    let clock = Arc::new(ManualClock::default());
    let agent = Agent::with_clock(FakeKernel::new(), clock.clone());
    let mut deaf = UnixStream::connect(&agent.socket).unwrap();
    deaf.set_nonblocking(true).unwrap();
    for _ in 0..20_000 {
        if deaf.write_all(format!("{STATUS}\n").as_bytes()).is_err() {
            break;
        }
    }
    // Enough for the user's next answers, but before the deaf client's deadline.
    clock.0.fetch_add(PATIENCE_MS / 2, Ordering::SeqCst);
    agent.connect().status();
    agent.end();
}

#[test]
fn beyond_the_bound_a_client_is_closed_and_the_rest_go_on() {
    if !rustix::process::geteuid().is_root() {
        return skip("beyond_the_bound_a_client_is_closed_and_the_rest_go_on", "not root");
    }
    let agent = Agent::start();
    let mut all: Vec<_> = (0..=MOST).map(|_| agent.connect()).collect();
    let mut one_more = all.pop().unwrap();
    assert_eq!(one_more.receive(), None);
    assert_eq!(all.len(), MOST);
    for connection in &mut all {
        connection.status();
    }
    drop(all);
    agent.connect().status();
    agent.end();
}

#[test]
fn reload_adopts_what_up_applied_and_refuses_wrong_settings() {
    if !rustix::process::geteuid().is_root() {
        return skip("reload_adopts_what_up_applied", "not root");
    }
    let agent = Agent::start();
    let applied = Applied {
        unix_s: 1,
        plans: vec![Plan { remedy: "swap".into(), ..Plan::default() }],
        ..Applied::default()
    };
    assert!(!agent.connect().status().applied);
    state::save(&agent.machine.root(), state::APPLIED, &applied).unwrap();
    assert!(!agent.connect().status().applied);
    assert_eq!(agent.ask(RELOAD), Response::Done);
    assert!(agent.connect().status().applied);
    agent.machine.put("etc/eke/eke.toml", "[agent]\ntick = 3\n");
    let Response::Refused { reason, needs_root: false } = agent.ask(RELOAD) else { panic!("not refused") };
    assert!(
        reason.contains("eke.toml:2: unknown field `tick`") && reason.contains("are unchanged"),
        "{reason}"
    );
    agent.end();
}

#[test]
fn root_may_stop_it_and_has_the_answer() {
    if !rustix::process::geteuid().is_root() {
        return skip("root_may_stop_it", "not root");
    }
    let agent = Agent::start();
    assert_eq!(agent.ask(STOP), Response::Done);
    assert_eq!(agent.join(), Ended::ByRequest);
}

/// Not a test of its own: the next test runs it as another user.
#[test]
fn client_of_another_user() {
    let Ok(socket) = std::env::var(SOCKET_OF_CLIENT) else { return };
    for line in [STATUS, STOP, RELOAD] {
        println!("{}", serde_json::to_string(&connect(socket.as_ref()).ask(line)).unwrap());
    }
}

#[test]
fn another_user_may_read_and_not_change() {
    if !rustix::process::geteuid().is_root() {
        return skip("another_user_may_read_and_not_change", "not root");
    }
    let agent = Agent::start();
    std::fs::set_permissions(agent.machine.dir(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut client = Command::new(std::env::current_exe().unwrap());
    client.args(["client_of_another_user", "--exact", "--nocapture"]).env(SOCKET_OF_CLIENT, &agent.socket);
    let output = match client.uid(65_534).gid(65_534).output() {
        Ok(output) => String::from_utf8(output.stdout).unwrap(),
        Err(e) => {
            return skip(
                "another_user_may_read_and_not_change",
                &format!("nobody cannot run this test program: {e}"),
            );
        }
    };
    let answers: Vec<Response> =
        output.lines().filter_map(|l| serde_json::from_str(l.get(l.find('{')?..)?).ok()).collect();
    assert_eq!(answers.len(), 3, "{output}");
    assert!(matches!(answers[0], Response::Status(_)));
    assert!(
        answers[1..].iter().all(|a| matches!(a, Response::Refused { needs_root: true, .. })),
        "{answers:?}"
    );
    wait_for("an answer", || agent.connect().status().agent.is_some());
    assert_eq!(agent.end(), Ended::BySignal);
}
