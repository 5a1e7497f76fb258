//! A far end that lies: a script in place of ssh.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use eke_link::measure::{self, Link, MeasureOptions, Ssh};
use eke_link::plan::Budget;
use eke_testkit::tree::put;
use tempfile::TempDir;

const CIPHER: &str = "aes128-gcm@openssh.com";

/// What ssh says and does.
struct Fake {
    /// The address that ssh connects to.
    address: &'static str,
    /// The far end's own address, as it says.
    own: &'static str,
    /// The line of the eke there.
    line: String,
}

impl Fake {
    fn ssh(&self, dir: &TempDir) -> Ssh {
        let Self { address, own, line } = self;
        let path = dir.path().display();
        let script = format!(
            "case \"$*\" in
            *-G*) echo 'hostname far'; exit ;;
            *'-Q cipher'*) echo {CIPHER}; exit ;;
            *'-Q mac'*) exit ;;
            *-V*) echo OpenSSH_9.2p1 >&2; exit ;;
            esac
            echo 'debug1: Connecting to far [{address}] port 22.
            debug1: Connection established.
            debug2: peer server KEXINIT proposal
            debug2: ciphers ctos: {CIPHER}
            debug2: ciphers stoc: {CIPHER}
            debug1: Connecting to far [{own}] port 22.
            debug1: Connection established.' | sed 's/^ *//' >&2
            PATH={path}:$PATH SSH_CONNECTION='{address} 5 {own} 22' exec sh
            "
        );
        put(dir.path(), "ssh", &script);
        put(dir.path(), "eke", &format!("#!/bin/sh\necho '{line}'\nread -r line\n"));
        std::fs::set_permissions(dir.path().join("eke"), Permissions::from_mode(0o755)).unwrap();
        Ssh { words: vec!["sh".into(), dir.path().join("ssh").into()], ..Ssh::default() }
    }

    fn measured(&self) -> Link {
        let dir = tempfile::tempdir().unwrap();
        let options = MeasureOptions {
            sessions: Some(1),
            budget: Budget { time: Duration::from_secs(2), bytes: 1_000_000 },
            ..MeasureOptions::new("far")
        };
        measure::run(&self.ssh(&dir), &options, &AtomicBool::new(false), &|_| {}).unwrap()
    }
}

#[test]
fn a_far_end_makes_this_machine_connect_nowhere_else_and_send_no_word() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let token = "0123456789abcdef0123456789abcdef";
    for (address, word, why) in [
        ("127.0.0.1", "FLUSHALL", "the far end sent no token of eke's"),
        (
            "127.0.0.2",
            token,
            "ssh connected to 127.0.0.2, and the far end says that its address is 127.0.0.1",
        ),
    ] {
        let fake = Fake { address, own: "127.0.0.1", line: format!("eke-link-end-1 {port} {word}") };
        let link = fake.measured();
        let note = link.no_bare.unwrap();
        assert!(note.starts_with(why), "{note}");
        let came = listener.accept().map(|(_, from)| from);
        assert!(came.is_err(), "{word}: a connection came from {came:?}");
    }
}
