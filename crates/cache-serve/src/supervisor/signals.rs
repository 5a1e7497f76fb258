//! Signals, as something to wait for.

use std::io;
use std::os::unix::net::UnixStream;

use eke_apply::end;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// A stream with a byte for each SIGTERM, SIGINT or SIGHUP.
///
/// # Errors
/// What the kernel answers.
pub fn stream() -> io::Result<UnixStream> {
    let readable = end::signals(&[SIGTERM, SIGINT, SIGHUP])?;
    readable.set_nonblocking(true)?;
    Ok(readable)
}

/// In a worker they mean nothing: the supervisor gets them too (^C goes to both), and a worker ends with the connection.
pub fn ignore() {
    for signal in [SIGTERM, SIGINT, SIGHUP, libc::SIGPIPE] {
        ignore_one(signal);
    }
}

#[expect(unsafe_code, reason = "rustix and signal-hook cannot ignore a signal")]
fn ignore_one(signal: i32) {
    // SAFETY: SIG_IGN runs nothing, and replaces the handler that came along with the fork.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}
