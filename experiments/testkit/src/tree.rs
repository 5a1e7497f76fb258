//! A directory as data.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tempfile::TempDir;

/// A temporary directory on tmpfs, if there is one, so that syncs in tests do not wait for a disk.
///
/// # Panics
/// If it cannot be created.
#[expect(clippy::panic, reason = "test code")]
pub fn in_memory() -> TempDir {
    let made = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    made.unwrap_or_else(|e| panic!("no temporary directory: {e}"))
}

/// Every file's content and every directory (as `None`) under `dir`, except `without`, by relative path.
pub fn read(dir: &Path, without: &[&str]) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    collect(dir, "", without, &mut found);
    found
}

fn collect(dir: &Path, at: &str, without: &[&str], found: &mut BTreeMap<String, Option<Vec<u8>>>) {
    for entry in fs::read_dir(dir.join(at)).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if at.is_empty() { name } else { format!("{at}/{name}") };
        if without.contains(&path.as_str()) {
            continue;
        }
        if entry.path().is_dir() {
            found.insert(path.clone(), None);
            collect(dir, &path, without, found);
        } else {
            found.insert(path, Some(fs::read(entry.path()).unwrap_or_default()));
        }
    }
}

/// Writes a file and creates its parent directories.
#[expect(clippy::disallowed_methods, reason = "a fake root must be created")]
pub fn put(dir: &Path, path: &str, text: &str) {
    let at = dir.join(path);
    if let Some(parent) = at.parent() {
        let _ = fs::create_dir_all(parent);
    }
    let _ = fs::write(at, text);
}
