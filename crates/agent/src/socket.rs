//! Where clients connect.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use eke_kernel::Root;

use crate::error::{Error, Result};

/// The socket, open to everybody: what a client may ask is told by who it is.
pub const FILE: &str = "run/eke/agent.sock";

/// Listens on it. A socket that a dead agent left is removed, so the caller must hold the agent's lock.
///
/// # Errors
/// The kernel's answer, with the path.
pub fn listen(root: &Root) -> Result<UnixListener> {
    remove(root)?;
    let path = root.path(FILE);
    let listener = UnixListener::bind(&path).map_err(|e| Error::io("listen on", &path, e))?;
    set_permissions(&path, Permissions::from_mode(0o666))
        .map_err(|e| Error::io("open to everybody", &path, e))?;
    Ok(listener)
}

/// Removes the socket; one that is not there is fine.
///
/// # Errors
/// The kernel's answer, with the path.
pub fn remove(root: &Root) -> Result<()> {
    let path = root.path(FILE);
    match root.sys().remove(&path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", &path, e)),
        _ => Ok(()),
    }
}
