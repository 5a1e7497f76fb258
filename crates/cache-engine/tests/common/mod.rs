//! The built program, with the worker's ends of its sockets.
#![allow(dead_code, reason = "no test binary uses all of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

pub mod fakes;

use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Child, Command, Stdio};

use eke_cache_shared::frame::VERSION;
use eke_testkit::wait::BOUND;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

/// It ends when these sockets are closed.
pub struct Program {
    pub child: Child,
    pub asks: OwnedFd,
    pub offers: OwnedFd,
}

fn pair() -> (OwnedFd, OwnedFd) {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
}

/// The program with its ends of two pairs of sockets; and the other ends.
pub fn start(config: &str) -> Program {
    start_for(VERSION, config)
}

/// The same for a worker of this version.
pub fn start_for(version: &str, config: &str) -> Program {
    let ((asks, their_asks), (offers, their_offers)) = (pair(), pair());
    set_socket_timeout(&asks, Timeout::Recv, Some(BOUND)).unwrap();
    for theirs in [&their_asks, &their_offers] {
        fcntl_setfd(theirs, FdFlags::empty()).unwrap();
    }
    let numbers = [&their_asks, &their_offers].map(|fd| fd.as_raw_fd().to_string());
    let mut program = Command::new(env!("CARGO_BIN_EXE_eke-cache-shared"));
    program.args(numbers).arg(version);
    let mut child = program.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It may have ended already.
    let _ = child.stdin.take().unwrap().write_all(config.as_bytes());
    Program { child, asks, offers }
}
