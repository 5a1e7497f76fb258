//! Sessions: one for each device, each with a thread.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc;
use std::thread::Builder;

use fuser::{Filesystem, Session};

use crate::init::{Grant, session};

/// Opens a session on each device.
///
/// # Errors
/// What the kernel or the file system's `init` answers.
pub(super) fn open<F: Filesystem + Clone>(
    fs: &F,
    devices: &[OwnedFd],
    grant: &Grant,
) -> io::Result<Vec<Session<F>>> {
    devices.iter().map(|device| session(fs.clone(), device, grant)).collect()
}

/// Runs them until the first one ends: with the connection (unmounted or aborted), or by a fault.
///
/// # Errors
/// The fault, or that no session is left.
pub(super) fn run<F: Filesystem>(sessions: Vec<Session<F>>) -> io::Result<()> {
    let (ended, end) = mpsc::channel();
    for (number, session) in sessions.into_iter().enumerate() {
        let ended = ended.clone();
        let thread = Builder::new().name(format!("session-{number}"));
        thread.spawn(move || ended.send(session.run()))?;
    }
    end.recv().unwrap_or_else(|_| Err(io::Error::other("no session is left")))
}
