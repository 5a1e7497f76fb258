//! Directories in memory, one for each thread.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

thread_local! {
    static DIR: TempDir = new();
}

/// A new directory, removed when dropped.
pub fn new() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a directory for files")
}

/// An empty directory of this name in this thread's directory.
pub fn empty(name: &str) -> PathBuf {
    let dir = DIR.with(|dir| dir.path().join(name));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("a directory for files");
    dir
}
