//! A lock file for one process. The lock ends with its process, in whatever way that ends.

use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::sys;
use eke_linux::error::Error;
use eke_linux::root::Root;

/// The lock; it lasts until dropped.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// Writes the pid that a refused process names.
    pub(crate) fn name(&mut self, pid: u32) -> io::Result<()> {
        self.0.set_len(0).and_then(|()| writeln!(self.0, "{pid}"))
    }

    /// Whether `path` is still the file that is locked.
    pub(crate) fn is_of(&self, root: &Root, path: &Path) -> bool {
        let same = |own: Metadata, there: Metadata| (own.dev(), own.ino()) == (there.dev(), there.ino());
        self.0.metadata().and_then(|own| Ok(same(own, root.metadata_at(path)?))).unwrap_or(false)
    }
}

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it.
    #[error("process {pid} holds the lock")]
    Held {
        /// Its pid, or `unknown`.
        pid: String,
    },
    /// The kernel's answer.
    #[error(transparent)]
    Kernel(#[from] Error),
}

/// Locks `path` and writes `pid` into it. The file stays when its process exits; its directory is created with
/// `dir_mode`.
///
/// # Errors
/// The pid of another process that holds the lock; the kernel's answer if the file cannot be created (not root).
pub fn take(root: &Root, path: &Path, dir_mode: u32, pid: u32) -> Result<Lock, LockError> {
    let mut lock = take_unnamed(root, path, dir_mode)?;
    lock.name(pid).map_err(|e| Error::io("write the process to", path, e))?;
    Ok(lock)
}

/// As [`take`], without a pid in the file.
///
/// # Errors
/// As [`take`].
pub(crate) fn take_unnamed(root: &Root, path: &Path, dir_mode: u32) -> Result<Lock, LockError> {
    if let Some(dir) = path.parent() {
        sys::of(root).create_dir(dir, dir_mode).map_err(|e| Error::io("make", dir, e))?;
    }
    let mut file = sys::of(root).lock_file(path).map_err(|e| Error::io("open", path, e))?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Err(LockError::Held { pid: written_in(&mut file) });
    }
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
    fn the_second_process_names_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let (root, path) = (Root::at(dir.path()), dir.path().join("run/eke/x.lock"));
        let first = take(&root, &path, 0o755, 4711).unwrap();
        let refused = take(&root, &path, 0o755, 4712).unwrap_err();
        assert!(matches!(&refused, LockError::Held { pid } if pid == "4711"), "{refused}");
        drop(first);
        take(&root, &path, 0o755, 4712).unwrap();
    }
}
