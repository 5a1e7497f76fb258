//! Signals as bytes on a stream.

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

/// Ignores them, in a worker and in the guard: the supervisor gets them too (^C goes to all), and a worker ends with the connection. A
/// write beyond a limit of file sizes is an error then (EFBIG), and not the end.
pub fn ignore() {
    for signal in [SIGTERM, SIGINT, SIGHUP, libc::SIGPIPE, libc::SIGXFSZ] {
        ignore_one(signal);
    }
}

#[expect(unsafe_code, reason = "rustix and signal-hook cannot ignore a signal")]
fn ignore_one(signal: i32) {
    // SAFETY: SIG_IGN runs no code, and replaces the handler that the fork inherited.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}
