//! The programs' home directory: new for each session, so that no viewer remembers the session before.

use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The start of its name; the owner's process id follows.
const PREFIX: &str = "eke-session-";

/// Makes a home directory in `parent`, removed when dropped. First removes the directories of sessions that were killed.
///
/// # Errors
/// The directory cannot be made.
pub(super) fn make(parent: &Path) -> io::Result<TempDir> {
    for stale in of_dead_owners(parent) {
        let _ = std::fs::remove_dir_all(stale);
    }
    tempfile::Builder::new().prefix(&format!("{PREFIX}{}-", std::process::id())).tempdir_in(parent)
}

fn of_dead_owners(parent: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let dead = |path: &PathBuf| {
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        owner(&name).is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())
    };
    entries.map(|e| e.path()).filter(dead).collect()
}

fn owner(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_of_dead_owners_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        // No process id is beyond 2^22 (proc_sys_kernel(5), pid_max).
        let (dead, other) = (parent.path().join("eke-session-9999999-x"), parent.path().join("eke-session"));
        std::fs::create_dir(&dead).unwrap();
        std::fs::create_dir(&other).unwrap();
        let first = make(parent.path()).unwrap();
        let second = make(parent.path()).unwrap();
        assert!(first.path().is_dir() && second.path().is_dir() && other.is_dir() && !dead.exists());
        let path = first.path().to_owned();
        drop(first);
        assert!(!path.exists());
    }

    #[test]
    fn a_directory_names_its_owner() {
        assert_eq!(
            (owner("eke-session-12-abc"), owner("eke-session-x-1"), owner("12-1")),
            (Some(12), None, None)
        );
    }
}
