//! The built program: how it starts, and how it ends.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

mod common;

use std::process::{Child, Command, Output};

use eke_cache_shared::frame::{Ask, MESSAGE, Reply, VERSION};
use eke_cache_shared::key::Group;
use eke_cache_shared::shared::monotonic_us;
use eke_testkit::wait::wait_for;
use rustix::io::retry_on_intr;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use common::{Program, start, start_for};

/// An engine that is not there: the discard port of this machine.
const NOWHERE: &str = r#"{"url":{"kind":{"Alone":0},"tls":false,"user":null,"hosts":[["127.0.0.1",9]]},"password":null,"ca":null}"#;

fn ended(child: Child) -> Output {
    eke_testkit::program::output_of(child)
}

#[test]
fn wrong_use_is_refused() {
    for args in [&[][..], &["3"], &["0", "1", VERSION], &["x", "4", VERSION], &["700", "701", VERSION]] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_eke-cache-shared"));
        let output = eke_testkit::program::output(program.args(args));
        assert!(output.status.code() == Some(2) && !output.stderr.is_empty(), "{args:?}");
    }
    let Program { child, asks: _asks, offers: _offers } = start("{}");
    assert_eq!(ended(child).status.code(), Some(2), "a configuration that is none");
}

/// After an upgrade and a death.
#[test]
fn a_worker_of_another_version_is_told_to_mount_anew() {
    let Program { child, asks, offers: _offers } = start_for("0.0.9", NOWHERE);
    let mut buffer = vec![0; MESSAGE];
    let (len, _) = retry_on_intr(|| recv(&asks, &mut buffer[..], RecvFlags::empty())).unwrap();
    let Some(Reply::Engine(engine)) = Reply::decode(&buffer[..len]) else { panic!("no report") };
    let Output { status, stderr, .. } = ended(child);
    let logged = String::from_utf8(stderr).unwrap();
    assert_eq!((status.code(), engine.connected), (Some(2), 0));
    assert!(
        engine.failed.contains("eke-cache 0.0.9: mount anew") && logged.contains(&engine.failed),
        "{logged}"
    );
}

#[test]
fn without_an_engine_asks_fail_and_it_ends_with_its_worker() {
    let Program { child, asks, offers } = start(NOWHERE);
    let ask = |until_us| Ask { id: 7, until_us, group: Group([3; 16]), indices: vec![0, 5] };
    // One in time, one for which nobody waits any more, and bytes that are no ask.
    for message in [ask(u64::MAX).encode(), ask(monotonic_us() - 1).encode(), vec![9; 30]] {
        send(&asks, &message, SendFlags::empty()).unwrap();
    }
    let (mut failed, mut buffer) = (0, vec![0; MESSAGE]);
    wait_for("both answers", || {
        let (len, _) = retry_on_intr(|| recv(&asks, &mut buffer[..], RecvFlags::empty())).unwrap();
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
