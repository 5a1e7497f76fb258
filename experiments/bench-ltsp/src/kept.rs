//! Measurements of an interrupted experiment: the same command continues where it ended.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::outcome::Measurement;

/// The measurements so far, in a file of the cache.
#[derive(Debug)]
pub struct Kept {
    path: PathBuf,
    contents: Contents,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Contents {
    /// Rounds by name.
    rounds: BTreeMap<String, Vec<Measurement>>,
}

impl Kept {
    /// What an earlier run of this command left in the cache; `image` is the clients' image, which it must have had.
    #[must_use]
    pub fn open(cache: &Path, command: &str, image: &str) -> Self {
        let path = cache.join(format!("{}{image}.json", beginning(command)));
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        Self { path, contents: serde_json::from_str(&text).unwrap_or_default() }
    }

    /// A round that was measured.
    #[must_use]
    pub fn round(&self, name: &str) -> Option<Vec<Measurement>> {
        self.contents.rounds.get(name).cloned()
    }

    /// Keeps a round.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, name: &str, round: &[Measurement]) -> Result<()> {
        self.contents.rounds.insert(name.to_owned(), round.to_vec());
        self.write()
    }

    fn write(&self) -> Result<()> {
        let text = serde_json::to_string(&self.contents)?;
        let new = self.path.with_extension("new");
        eke_vm::write_scratch(&new, text.as_bytes())?;
        std::fs::rename(&new, &self.path).map_err(eke_bench_core::fault::on("rename", &new))?;
        Ok(())
    }
}

/// Removes what was kept of this command, of all images.
pub fn forget(cache: &Path, command: &str) {
    let beginning = beginning(command);
    for entry in std::fs::read_dir(cache).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&beginning) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The beginning of its files' names.
fn beginning(command: &str) -> String {
    let mut hasher = DefaultHasher::new();
    command.hash(&mut hasher);
    format!("kept-{:016x}-", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_command_with_the_same_image_continues() {
        let dir = tempfile::tempdir().unwrap();
        let open = |command| Kept::open(dir.path(), command, "0123456789abcdef");
        let mut kept = open("a");
        kept.add("eke, 124 MiB, round 1", &[Measurement::default()]).unwrap();
        assert_eq!(open("a").round("eke, 124 MiB, round 1").map(|r| r.len()), Some(1));
        assert!(open("b").round("eke, 124 MiB, round 1").is_none());
        open("b").add("eke, 124 MiB, round 1", &[]).unwrap();
        forget(dir.path(), "a");
        assert!(open("a").round("eke, 124 MiB, round 1").is_none());
        assert!(open("b").round("eke, 124 MiB, round 1").is_some(), "another command's");
    }
}
