//! The browser's own directory: removed at the end, or by the next run if this one is killed.

use std::path::{Path, PathBuf};

use eke_linux::Root;
use eke_linux::cgroup::name;

const LABEL: &str = "eke-tabs";

/// A directory of this process below another one, removed when dropped.
#[derive(Debug)]
pub struct Place(PathBuf);

impl Place {
    /// Makes it, for this user alone. Removes first what dead owners left.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn make(root: &Root, above: &Path) -> Result<Self, eke_linux::Error> {
        sweep(root, above);
        let owner = name::this_process(root)?.ok_or_else(|| {
            eke_linux::Error::Refused("cannot name the browser's directory: is /proc mounted?".to_owned())
        })?;
        let path = above.join(format!("{LABEL}-{owner}"));
        let made =
            std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).create(&path);
        match made {
            Ok(()) => Ok(Self(path)),
            Err(source) => {
                Err(eke_linux::Error::Refused(format!("cannot make {}: {source}", path.display())))
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A process that is just ending may still write into it.
        for _ in 0..20 {
            if std::fs::remove_dir_all(&self.0).is_ok() || !self.0.exists() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

/// Removes the directories of owners that run no more. Others' and foreign names stay.
fn sweep(root: &Root, above: &Path) {
    let Ok(entries) = std::fs::read_dir(above) else { return };
    for entry in entries.flatten() {
        let file = entry.file_name();
        let owner = file.to_str().filter(|name| name.starts_with(LABEL)).and_then(name::owner);
        // Who cannot be looked at must be taken to run.
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
        let above = tempfile::tempdir().unwrap();
        let dead = above.path().join("eke-tabs-4194304-1");
        let foreign = above.path().join("eke-tabs-notes");
        std::fs::create_dir_all(dead.join("Default")).unwrap();
        std::fs::create_dir(&foreign).unwrap();
        let root = Root::host();
        let place = Place::make(&root, above.path()).unwrap();
        assert!(!dead.exists() && foreign.exists() && place.path().exists());
        sweep(&root, above.path());
        let path = place.path().to_owned();
        assert!(path.exists(), "its owner lives");
        drop(place);
        assert!(!path.exists());
    }
}
