//! One process at a time changes files and their journal.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use crate::lock::{self, Lock, LockError};
use crate::sys;
use eke_linux::error::{Error, Result};
use eke_linux::root::{Root, STATE_DIR};

const NAME: &str = "files.lock";
const TRY_EVERY: Duration = Duration::from_millis(50);
/// Five seconds: a change of files takes less, but its commands may take minutes.
const TRIES: usize = 100;

/// The lock; it lasts until dropped, and leaves no file.
#[derive(Debug)]
pub struct FilesLock(Option<(Root, PathBuf, Lock)>);

impl Drop for FilesLock {
    fn drop(&mut self) {
        if let Some((root, path, _)) = &self.0 {
            let _ = sys::of(root).remove_lock_file(path);
        }
    }
}

/// Waits up to five seconds for the lock. On a read-only file system nobody changes the journal, so there it is none.
///
/// # Errors
/// Another process has it: its pid. The kernel's answer.
pub fn lock(root: &Root) -> Result<FilesLock> {
    lock_unless(root, |kind| kind == ErrorKind::ReadOnlyFilesystem)
}

/// As [`lock`], for an undo. Where eke has kept no state there is nothing to undo or to lock, and no directory is made. Where the file has no room, no other
/// process has it or can make it: an undo goes on without, because it needs no room where there is nothing to undo.
///
/// # Errors
/// As [`lock`].
pub fn lock_to_undo(root: &Root) -> Result<FilesLock> {
    if !root.exists(STATE_DIR) {
        return Ok(FilesLock(None));
    }
    lock_unless(root, |kind| kind == ErrorKind::ReadOnlyFilesystem || lacks_room(kind))
}

/// Whether a file system is full, or its owner's quota is.
pub(crate) fn lacks_room(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// The lock, or none if the kernel refuses its file for one of these reasons.
fn lock_unless(root: &Root, permits: fn(ErrorKind) -> bool) -> Result<FilesLock> {
    let path = root.path(format!("{STATE_DIR}/{NAME}"));
    let mut holder = String::new();
    for _ in 0..TRIES {
        match lock::take_unnamed(root, &path, 0o755) {
            // The one before removed the file between its opening and its locking here.
            Ok(lock) if !lock.is_of(root, &path) => continue,
            Ok(mut lock) => {
                // The number is only for a message of others, and a full file system has no room for it.
                let _ = lock.name(std::process::id());
                return Ok(FilesLock(Some((root.clone(), path, lock))));
            }
            Err(LockError::Kernel(Error::Io { source, .. })) if permits(source.kind()) => {
                return Ok(FilesLock(None));
            }
            Err(LockError::Kernel(e)) => return Err(e),
            Err(LockError::Held { pid }) => holder = pid,
        }
        root.sleep(TRY_EVERY);
    }
    Err(Error::Refused(format!(
        "process {holder} changes files through eke's journal at the moment (it holds {}); try again when it has ended",
        path.display()
    )))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn no_file_is_left_and_an_undo_makes_no_directory() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        drop(lock_to_undo(&root).unwrap());
        assert!(!root.exists("var"));
        drop(lock(&root).unwrap());
        assert_eq!(root.list(STATE_DIR).unwrap(), [""; 0]);
    }

    /// Each removes the file that the next one has opened already.
    #[test]
    fn only_one_at_a_time_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let counted = AtomicUsize::new(0);
        let count = || {
            for _ in 0..50 {
                let _lock = lock(&root).unwrap();
                let n = counted.load(Relaxed);
                std::thread::yield_now();
                counted.store(n + 1, Relaxed);
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(count))));
        assert_eq!(counted.into_inner(), 200);
    }
}
