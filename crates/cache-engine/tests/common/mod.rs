//! The built program, with the worker's ends of its sockets.
#![allow(dead_code, reason = "no test binary uses all of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

pub mod fakes;

use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Child, Command, Stdio};

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
    let ((asks, their_asks), (offers, their_offers)) = (pair(), pair());
    set_socket_timeout(&asks, Timeout::Recv, Some(BOUND)).unwrap();
    for theirs in [&their_asks, &their_offers] {
        fcntl_setfd(theirs, FdFlags::empty()).unwrap();
    }
    let numbers = [&their_asks, &their_offers].map(|fd| fd.as_raw_fd().to_string());
    let mut program = Command::new(env!("CARGO_BIN_EXE_eke-cache-shared"));
    let mut child = program.args(numbers).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(config.as_bytes()).unwrap();
    Program { child, asks, offers }
}
