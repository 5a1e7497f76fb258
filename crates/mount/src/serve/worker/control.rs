//! The thread that answers the supervisor, and that notices its end.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use crate::serve::log::say;
use crate::serve::mount::{By, unmount};
use crate::serve::supervisor::talk::{Ask, Say, hear, tell};
use crate::status::Figures;

/// Where the worker serves.
pub(super) struct Mount {
    pub(super) place: PathBuf,
    pub(super) by: By,
}

/// What the worker knows, at any moment.
pub(super) type Known = Box<dyn Fn() -> Figures + Send>;

/// Starts it.
///
/// # Errors
/// No thread can be started.
pub(super) fn start(talk: OwnedFd, mount: Mount, figures: Known) -> io::Result<()> {
    let thread = std::thread::Builder::new().name("control".into());
    thread.spawn(move || {
        let why = answer(&talk, &figures);
        say(&format!(
            "the supervisor is gone ({why}): the mount is taken away, and the directory below shows again"
        ));
        leave(&mount);
    })?;
    Ok(())
}

fn answer(talk: &OwnedFd, figures: &Known) -> io::Error {
    loop {
        match hear(talk.as_fd(), true) {
            Ok(Some(Ask::Figures(number))) => {
                let _ = tell(talk.as_fd(), &Say::Figures(number, Box::new(figures())));
            }
            Ok(None) => {}
            Err(e) => return e,
        }
    }
}

/// Without a supervisor nobody would follow this worker. The mount goes while it can still answer; then its end closes the
/// last descriptors, and the kernel ends the connection. If both die at once, the mount stays and answers ENOTCONN, until
/// `eke cache umount` or umount(8) takes it away.
fn leave(mount: &Mount) -> ! {
    if let Err(refusal) = unmount(&mount.place, mount.by, true) {
        say(&refusal.what);
    }
    std::process::exit(1)
}
