//! Files in memory, one directory a thread.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

thread_local! {
    static DIR: TempDir = new();
}

/// A directory of its own, gone when it is dropped.
pub fn new() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a directory for files")
}

/// This thread's, with this name below it and nothing of an earlier call there.
pub fn empty(name: &str) -> PathBuf {
    let dir = DIR.with(|dir| dir.path().join(name));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("a directory for files");
    dir
}
