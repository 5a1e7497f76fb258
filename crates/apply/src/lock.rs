//! One process for a thing: a lock that dies with its process, however that dies.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::sys;
use eke_linux::error::Error;
use eke_linux::root::Root;

/// Held for as long as it lives.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held for its lock")] File);

/// Why a lock is not had.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// Another has it.
    #[error("process {pid} has it")]
    Held {
        /// Its process, or `unknown`.
        pid: String,
    },
    /// The kernel's answer.
    #[error(transparent)]
    Kernel(#[from] Error),
}

/// Takes the lock of `path` and writes `pid` into it. The file stays when its process leaves; its directory is made, with this mode.
///
/// # Errors
/// Another process has it, whose pid is told; the kernel's answer where the file cannot be made (not root).
pub fn take(root: &Root, path: &Path, dir_mode: u32, pid: u32) -> Result<Lock, Refused> {
    if let Some(dir) = path.parent() {
        sys::of(root).create_dir(dir, dir_mode).map_err(|e| Error::io("make", dir, e))?;
    }
    let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    let mut file = open.map_err(|e| Error::io("open", path, e))?;
    // Whoever can open it can lock it, and keep every other from starting.
    let private = file.set_permissions(Permissions::from_mode(0o600));
    private.map_err(|e| Error::io("make private", path, e))?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Err(Refused::Held { pid: written_in(&mut file) });
    }
    let written = file.set_len(0).and_then(|()| writeln!(file, "{pid}"));
    written.map_err(|e| Error::io("write the process to", path, e))?;
    Ok(Lock(file))
}

fn written_in(file: &mut File) -> String {
    let mut text = String::new();
    let _ = file.take(20).read_to_string(&mut text);
    text.trim().parse::<u32>().map_or_else(|_| "unknown".to_owned(), |pid| pid.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_the_first_is() {
        let dir = tempfile::tempdir().unwrap();
        let (root, path) = (Root::at(dir.path()), dir.path().join("run/eke/x.lock"));
        let first = take(&root, &path, 0o755, 4711).unwrap();
        let refused = take(&root, &path, 0o755, 4712).unwrap_err();
        assert!(matches!(&refused, Refused::Held { pid } if pid == "4711"), "{refused}");
        drop(first);
        take(&root, &path, 0o755, 4712).unwrap();
    }
}
