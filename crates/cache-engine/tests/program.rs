//! The built program: how it starts, and how it ends.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Child, Command, Output, Stdio};

use eke_cache_shared::frame::{Ask, MESSAGE, Reply};
use eke_cache_shared::key::Group;
use eke_cache_shared::shared::monotonic_us;
use eke_testkit::wait::wait_for;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};

/// An engine that is not there: the discard port of this machine.
const NOWHERE: &str = r#"{"url":{"kind":{"Alone":0},"tls":false,"user":null,"hosts":[["127.0.0.1",9]]},"password":null,"ca":null}"#;

fn pair() -> (OwnedFd, OwnedFd) {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
}

/// The program with its ends of two pairs of sockets; and the other ends.
fn start(config: &str) -> (Child, OwnedFd, OwnedFd) {
    let ((asks, their_asks), (offers, their_offers)) = (pair(), pair());
    for theirs in [&their_asks, &their_offers] {
        fcntl_setfd(theirs, FdFlags::empty()).unwrap();
    }
    let numbers = [&their_asks, &their_offers].map(|fd| fd.as_raw_fd().to_string());
    let mut program = Command::new(env!("CARGO_BIN_EXE_eke-cache-shared"));
    let mut child = program.args(numbers).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(config.as_bytes()).unwrap();
    (child, asks, offers)
}

fn ended(child: Child) -> Output {
    child.wait_with_output().unwrap()
}

#[test]
fn wrong_use_is_refused() {
    for args in [&[][..], &["3"], &["0", "1"], &["x", "4"], &["700", "701"]] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_eke-cache-shared"));
        let output = program.args(args).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.code() == Some(2) && !output.stderr.is_empty(), "{args:?}");
    }
    let (child, _asks, _offers) = start("{}");
    assert_eq!(ended(child).status.code(), Some(2), "a configuration that is none");
}

#[test]
fn without_an_engine_asks_fail_and_it_ends_with_its_worker() {
    let (child, asks, offers) = start(NOWHERE);
    let ask = |until_us| Ask { id: 7, until_us, group: Group([3; 16]), indices: vec![0, 5] };
    // One in time, one for which nobody waits any more, and bytes that are no ask.
    for message in [ask(u64::MAX).encode(), ask(monotonic_us() - 1).encode(), vec![9; 30]] {
        send(&asks, &message, SendFlags::empty()).unwrap();
    }
    let (mut failed, mut buffer) = (0, vec![0; MESSAGE]);
    wait_for("both answers", || {
        let (len, _) = recv(&asks, &mut buffer[..], RecvFlags::empty()).unwrap();
        match Reply::decode(&buffer[..len]) {
            Some(Reply::Failed(7)) => failed += 1,
            Some(Reply::Engine(engine)) => assert_eq!(engine.connected, 0),
            other => panic!("{other:?}"),
        }
        failed == 2
    });
    drop((asks, offers));
    assert_eq!(ended(child).status.code(), Some(0));
}
