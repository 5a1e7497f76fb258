//! One agent a machine: a lock that dies with its process, however that dies.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

use eke_kernel::Root;
use eke_kernel::root::RUN_DIR;
use rustix::fs::{FlockOperation, flock};

use crate::error::{Error, Result};

/// The lock's file; it holds the agent's pid and stays when the agent leaves.
pub const FILE: &str = "run/eke/agent.lock";

/// Held for as long as the agent runs.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held for its lock")] File);

/// Takes the lock and writes `pid` into it.
///
/// # Errors
/// `AlreadyRuns` with the other's pid; the kernel's answer where `run/eke` cannot be made (not root).
pub fn take(root: &Root, pid: u32) -> Result<Lock> {
    let dir = root.path(RUN_DIR);
    root.sys().create_dir(&dir, 0o755).map_err(|e| Error::io("make", &dir, e))?;
    let path = root.path(FILE);
    let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
    let mut file = open.map_err(|e| Error::io("open", &path, e))?;
    // Whoever can open it can lock it, and keep every agent from starting.
    let private = file.set_permissions(Permissions::from_mode(0o600));
    private.map_err(|e| Error::io("make private", &path, e))?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Err(Error::AlreadyRuns { pid: written_in(&mut file) });
    }
    let written = file.set_len(0).and_then(|()| writeln!(file, "{pid}"));
    written.map_err(|e| Error::io("write the agent's pid to", &path, e))?;
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
        let root = Root::at(dir.path());
        let first = take(&root, 4711).unwrap();
        let message = take(&root, 4712).unwrap_err().to_string();
        assert!(message.starts_with("an agent runs already (process 4711)"), "{message}");
        drop(first);
        take(&root, 4712).unwrap();
    }
}
