//! The sockets of the agent: one for everybody, and one for root.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use eke_linux::{Root, passed};

use crate::error::{Error, Result};

/// The public socket: what a client may request depends on its user.
pub const FILE: &str = "run/eke/agent.sock";
/// Root's own socket, which other users cannot flood.
pub const FILE_OF_ROOT: &str = "run/eke/agent-root.sock";

/// Length of the accept queue. In a longer one, a flood would make other clients wait for seconds.
const QUEUE: i32 = 128;

/// The sockets.
#[derive(Debug)]
pub struct Listeners {
    /// At [`FILE`].
    pub everybody: UnixListener,
    /// At [`FILE_OF_ROOT`].
    pub root: UnixListener,
    /// Whether the kernel refuses descriptors of clients (Linux 6.16).
    pub refuses_descriptors: bool,
}

/// Listens on both. Removes the sockets of a dead agent, so the caller must hold the agent's lock.
///
/// # Errors
/// The kernel's answer, with the path.
pub fn listen(root: &Root) -> Result<Listeners> {
    remove(root)?;
    // Root's first: a client that sees the public socket may rely on it.
    let of_root = bind(root, FILE_OF_ROOT, 0o600)?;
    let everybody = bind(root, FILE, 0o666)?;
    let refuses_descriptors = passed::refuse(&everybody).and_then(|()| passed::refuse(&of_root)).is_ok();
    Ok(Listeners { everybody, root: of_root, refuses_descriptors })
}

fn bind(root: &Root, file: &str, mode: u32) -> Result<UnixListener> {
    let path = root.path(file);
    let listener = UnixListener::bind(&path).map_err(|e| Error::io("listen on", &path, e))?;
    let opened = set_permissions(&path, Permissions::from_mode(mode));
    opened.map_err(|e| Error::io("set the permissions of", &path, e))?;
    listener.set_nonblocking(true).map_err(Error::Wait)?;
    rustix::net::listen(&listener, QUEUE).map_err(|e| Error::io("listen on", &path, e.into()))?;
    Ok(listener)
}

/// Removes the sockets, if they exist.
///
/// # Errors
/// The kernel's answer, with the path.
pub fn remove(root: &Root) -> Result<()> {
    for file in [FILE, FILE_OF_ROOT] {
        let path = root.path(file);
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(Error::io("remove", &path, e)),
            _ => {}
        }
    }
    Ok(())
}
