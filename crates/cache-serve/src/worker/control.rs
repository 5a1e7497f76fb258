//! The thread that answers the supervisor, and that notices its end.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use eke_cache_mounts::Mount;
use eke_cache_mounts::status::WorkerStats;

use crate::log::say;
use crate::mount::{By, How, unmount};
use crate::supervisor::guard::is_there;
use crate::supervisor::talk::{Ask, Say, hear, tell};

/// What the worker knows, at any moment.
pub(super) type Known = Box<dyn Fn() -> WorkerStats + Send>;

/// Starts it.
///
/// # Errors
/// No thread can be started.
pub(super) fn start(talk: OwnedFd, by: By, shown: Mount, stats: Known) -> io::Result<()> {
    let thread = std::thread::Builder::new().name("control".into());
    thread.spawn(move || {
        let why = answer(&talk, &stats);
        say(&format!("the supervisor is gone ({why}), so the worker ends"));
        leave(by, &shown)
    })?;
    Ok(())
}

fn answer(talk: &OwnedFd, stats: &Known) -> io::Error {
    loop {
        match hear(talk.as_fd(), true) {
            Ok(Some(Ask::WorkerStats(number))) => {
                let _ = tell(talk.as_fd(), &Say::WorkerStats(number, Box::new(stats())));
            }
            Ok(None) => {}
            Err(e) => return e,
        }
    }
}

/// Without a supervisor nobody would follow this worker. The guard takes the mount away; if it is gone as well, this does.
fn leave(by: By, shown: &Mount) {
    if is_there(shown) {
        let _ = unmount(shown, by, How::Lazily);
    }
    std::process::exit(1)
}
