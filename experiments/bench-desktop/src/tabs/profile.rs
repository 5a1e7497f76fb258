//! The browser's profile directory: removed at the end, or by the next run if this one is killed.

use std::path::{Path, PathBuf};

use eke_linux::Root;
use eke_linux::cgroup::name;

const LABEL: &str = "eke-tabs";

/// A profile directory of this process, removed when dropped.
#[derive(Debug)]
pub struct Profile(PathBuf);

impl Profile {
    /// Makes a directory in `parent` that only this user can enter. First removes directories of dead owners.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn make(root: &Root, parent: &Path) -> Result<Self, eke_linux::Error> {
        sweep(root, parent);
        let owner = name::this_process(root)?.ok_or_else(|| {
            eke_linux::Error::Refused("cannot name the browser's directory: is /proc mounted?".to_owned())
        })?;
        let path = parent.join(format!("{LABEL}-{owner}"));
        let made =
            std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).create(&path);
        match made {
            Ok(()) => Ok(Self(path)),
            Err(source) => {
                Err(eke_linux::Error::Refused(format!("cannot make {}: {source}", path.display())))
            }
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        // An ending process may still write into it.
        for _ in 0..20 {
            if std::fs::remove_dir_all(&self.0).is_ok() || !self.0.exists() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

/// Removes the directories of dead owners. Those of living owners and foreign names stay.
fn sweep(root: &Root, parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let file = entry.file_name();
        let owner = file.to_str().filter(|name| name.starts_with(LABEL)).and_then(name::owner);
        // An owner whose state is unknown counts as alive.
        if owner.is_some_and(|owner| !name::is_alive(root, owner).unwrap_or(true)) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_owners_directory_goes_and_all_others_stay() {
        let parent = tempfile::tempdir().unwrap();
        let dead = parent.path().join("eke-tabs-4194304-1");
        let foreign = parent.path().join("eke-tabs-notes");
        std::fs::create_dir_all(dead.join("Default")).unwrap();
        std::fs::create_dir(&foreign).unwrap();
        let root = Root::host();
        let profile = Profile::make(&root, parent.path()).unwrap();
        assert!(!dead.exists() && foreign.exists() && profile.path().exists());
        sweep(&root, parent.path());
        let path = profile.path().to_owned();
        assert!(path.exists(), "its owner lives");
        drop(profile);
        assert!(!path.exists());
    }
}
