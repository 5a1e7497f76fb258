//! A hostile user: connections and requests without end. Others and root are still answered, and the agent stays idle.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

mod common;

use std::io::{BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use common::{Agent, Connection, ManualClock, STATUS, connect, connect_as};
use eke_agent::clock::SystemClock;
use eke_agent::limits::{OF_A_USER, Rate};
use eke_agent::socket::{self, Listeners};
use eke_testkit::fake_kernel::FakeKernel;
use eke_testkit::passed::{lingering, pass};
use eke_testkit::real::skip;
use eke_testkit::wait::wait_for;
use rustix::net::SendFlags;

const HOSTILE: u32 = 65_534;
const OTHER: u32 = 12_345;

/// An agent that other users can reach, with this clock; `None` if the test cannot change its user.
fn agent(test: &str, clock: Option<Arc<ManualClock>>) -> Option<Agent> {
    if !rustix::process::geteuid().is_root() {
        skip(test, "only root can become other users");
        return None;
    }
    let machine = FakeKernel::new();
    std::fs::set_permissions(machine.dir(), std::fs::Permissions::from_mode(0o755)).unwrap();
    Some(match clock {
        Some(clock) => Agent::with_clock(machine, clock),
        None => Agent::on(machine),
    })
}

fn of_root(agent: &Agent) -> PathBuf {
    agent.machine.dir().join(socket::FILE_OF_ROOT)
}

#[test]
fn a_user_with_all_connections_blocks_neither_others_nor_root() {
    let Some(agent) = agent("a_user_who_holds_all_connections", None) else { return };
    let held: Vec<UnixStream> = (0..400).map(|_| connect_as(HOSTILE, &agent.socket).unwrap()).collect();
    let other = connect_as(OTHER, &agent.socket).unwrap();
    assert!(Connection(BufReader::new(other)).status().agent.is_some());
    assert!(agent.connect().status().agent.is_some());
    drop(held);
    agent.end();
}

/// Requests without end over all connections of one user.
struct Flood(Vec<UnixStream>);

impl Flood {
    fn start(agent: &Agent) -> Self {
        let mut streams: Vec<UnixStream> =
            (0..6).map(|_| connect_as(HOSTILE, &agent.socket).unwrap()).collect();
        for stream in &mut streams {
            stream.write_all(format!("{STATUS}\n").repeat(200).as_bytes()).unwrap();
            stream.set_nonblocking(true).unwrap();
        }
        Self(streams)
    }

    /// Answers since the last call.
    fn answers(&mut self) -> u64 {
        let mut lines = 0;
        let mut piece = vec![0; 64 << 10];
        for stream in &mut self.0 {
            loop {
                match stream.read(&mut piece) {
                    Ok(0) => panic!("the agent closed"),
                    Ok(count) => lines += piece[..count].iter().filter(|b| **b == b'\n').count() as u64,
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e) => panic!("{e}"),
                }
            }
        }
        lines
    }

    /// Exactly that many answers arrive, and no more while root sends many requests.
    fn gets(&mut self, agent: &Agent, expected: u64) {
        let mut answers = 0;
        wait_for("the answers that are due", || {
            // The clock is the test's: the agent reads it when another client asks.
            agent.connect().status();
            answers += self.answers();
            answers >= expected
        });
        (0..20).for_each(|_| drop(connect(&of_root(agent)).status()));
        assert_eq!(answers + self.answers(), expected);
    }
}

#[test]
fn endless_requests_of_a_user_are_answered_at_a_limited_rate() {
    let clock = Arc::new(ManualClock::default());
    clock.0.store(1_000_000, Ordering::SeqCst);
    let Some(agent) = agent("a_user_who_asks_without_end", Some(Arc::clone(&clock))) else { return };
    let Rate { every_ms, burst } = OF_A_USER;
    let mut flood = Flood::start(&agent);
    flood.gets(&agent, burst);
    clock.0.fetch_add(10 * every_ms, Ordering::SeqCst);
    flood.gets(&agent, 10);
    agent.end();
}

#[test]
fn connections_that_come_too_fast_wait_and_roots_do_not() {
    let clock = Arc::new(ManualClock::default());
    clock.0.store(1_000_000, Ordering::SeqCst);
    let Some(agent) = agent("connections_that_come_too_fast", Some(Arc::clone(&clock))) else { return };
    let waiting: Vec<UnixStream> = (0..200).map(|_| connect_as(HOSTILE, &agent.socket).unwrap()).collect();
    // With this clock, the public socket accepts no further connection.
    assert!(connect(&of_root(&agent)).status().agent.is_some());
    let refused = connect_as(OTHER, &of_root(&agent)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
    drop(waiting);
    agent.end();
}

/// The queue of the public socket is short, and is accepted in a few of the agent's windows.
#[test]
fn a_client_behind_a_flood_is_answered_soon() {
    let clock = Arc::new(ManualClock::default());
    clock.0.store(1_000_000, Ordering::SeqCst);
    let Some(agent) = agent("whoever_comes_behind_a_flood", Some(Arc::clone(&clock))) else { return };
    let waiting: Vec<UnixStream> = (0..200).map(|_| connect_as(HOSTILE, &agent.socket).unwrap()).collect();
    let mut other = connect_as(OTHER, &agent.socket).unwrap();
    other.write_all(format!("{STATUS}\n").as_bytes()).unwrap();
    for _ in 0..3 {
        clock.0.fetch_add(20, Ordering::SeqCst);
        connect(&of_root(&agent)).status();
    }
    assert!(Connection(BufReader::new(other)).receive().is_some());
    drop(waiting);
    agent.end();
}

#[test]
fn single_bytes_do_not_keep_the_agent_busy() {
    let clock = Arc::new(ManualClock::default());
    clock.0.store(1_000_000, Ordering::SeqCst);
    let Some(agent) = agent("single_bytes", Some(Arc::clone(&clock))) else { return };
    let mut stream = connect_as(HOSTILE, &agent.socket).unwrap();
    let mut ask = |text: &[u8]| {
        stream.write_all(text).unwrap();
        connect(&of_root(&agent)).status();
    };
    ask(&STATUS.as_bytes()[..1]);
    connect(&of_root(&agent)).status();
    // This client is throttled: the agent reads nothing from it before the clock moves.
    ask(&[&STATUS.as_bytes()[1..], b"\n"].concat());
    stream.set_nonblocking(true).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    clock.0.fetch_add(50, Ordering::SeqCst);
    connect(&of_root(&agent)).status();
    stream.set_nonblocking(false).unwrap();
    assert!(Connection(BufReader::new(stream)).receive().is_some());
    agent.end();
}

/// The agent never has the last reference of what a user passes, in any way in which a connection ends.
fn passes_lingering_sockets(agent: &Agent) {
    let mut others = Vec::new();
    for (round, flags) in [SendFlags::empty(), SendFlags::OOB].into_iter().cycle().take(60).enumerate() {
        let (socket, other) = lingering().unwrap();
        others.push(other);
        let mut stream = connect_as(HOSTILE, &agent.socket).unwrap();
        // The agent pauses after half a request, so that it reads the descriptor only when this test has no copy.
        if round % 3 > 0 {
            stream.write_all(if round % 3 == 1 { b"{" } else { b"x\n{" }).unwrap();
        }
        let _ = pass(&stream, &socket, flags);
        // Where this is the last reference, a thread lingers until the test's end.
        std::thread::spawn(move || drop(socket));
        // Others wait in the agent's queue, are turned away, or are closed for a newer one.
        if round % 2 == 0 {
            std::mem::forget(stream);
        }
        assert!(connect(&of_root(agent)).status().agent.is_some());
    }
    let other = connect_as(OTHER, &agent.socket).unwrap();
    assert!(Connection(BufReader::new(other)).status().agent.is_some());
}

#[test]
fn a_lingering_socket_that_a_user_passes_does_not_stall_the_agent() {
    let Some(agent) = agent("a_lingering_socket", None) else { return };
    passes_lingering_sockets(&agent);
    agent.end();
}

/// Before Linux 6.16 the kernel does not refuse them: another process closes them.
#[test]
fn without_the_kernels_help_another_process_closes_what_a_user_passes() {
    if !rustix::process::geteuid().is_root() {
        return skip("without_the_kernels_help", "only root can become other users");
    }
    let machine = FakeKernel::new();
    std::fs::set_permissions(machine.dir(), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::create_dir_all(machine.dir().join("run/eke")).unwrap();
    let bind = |file: &str, mode| {
        let listener = UnixListener::bind(machine.dir().join(file)).unwrap();
        std::fs::set_permissions(machine.dir().join(file), std::fs::Permissions::from_mode(mode)).unwrap();
        listener.set_nonblocking(true).unwrap();
        listener
    };
    let (root, everybody) = (bind(socket::FILE_OF_ROOT, 0o600), bind(socket::FILE, 0o666));
    let listeners = Listeners { everybody, root, refuses_descriptors: false };
    let agent = Agent::with_listeners(Arc::clone(&machine), Arc::new(SystemClock), listeners);
    passes_lingering_sockets(&agent);
    agent.end();
}
