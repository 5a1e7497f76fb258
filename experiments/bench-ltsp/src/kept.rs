//! Measurements of an interrupted experiment: the same command continues where it ended.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

use eke_results::report::provenance::{UNKNOWN, is_same_code};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::outcome::Measurement;

/// The measurements so far, in a file of the cache.
#[derive(Debug)]
pub struct Kept {
    path: PathBuf,
    /// That of this program.
    commit: String,
    contents: Contents,
}

/// The measurements of a round, one for each client.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// The commit of the program that measured it.
    pub commit: String,
    /// By client.
    pub clients: Vec<Measurement>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Contents {
    /// Rounds by name.
    rounds: BTreeMap<String, Vec<Measurement>>,
    /// The commits of rounds. Files of before December 2026 have none.
    #[serde(default)]
    commits: BTreeMap<String, String>,
}

impl Kept {
    /// What an earlier run of this command left in the cache; `image` is the clients' image, which it must have had.
    #[must_use]
    pub fn open(cache: &Path, command: &str, image: &str, commit: &str) -> Self {
        let path = cache.join(format!("{}{image}.json", beginning(command)));
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        Self { path, commit: commit.to_owned(), contents: serde_json::from_str(&text).unwrap_or_default() }
    }

    /// Refuses rounds of other code, unless `any_commit`.
    ///
    /// # Errors
    /// There are such rounds.
    pub fn check(&self, any_commit: bool) -> Result<()> {
        let commits: BTreeSet<&str> = self.contents.rounds.keys().map(|name| self.of(name)).collect();
        if any_commit || commits.iter().all(|commit| is_same_code(commit, &self.commit)) {
            return Ok(());
        }
        Err(Error::OtherCommits {
            path: self.path.display().to_string(),
            commits: commits.into_iter().collect::<Vec<_>>().join(" and "),
            own: self.commit.clone(),
        })
    }

    /// The commit of a round.
    fn of(&self, name: &str) -> &str {
        self.contents.commits.get(name).map_or(UNKNOWN, String::as_str)
    }

    /// A round that was measured.
    #[must_use]
    pub fn round(&self, name: &str) -> Option<Round> {
        let clients = self.contents.rounds.get(name)?.clone();
        Some(Round { commit: self.of(name).to_owned(), clients })
    }

    /// Keeps a round that this program measured.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, name: &str, clients: Vec<Measurement>) -> Result<Round> {
        self.contents.rounds.insert(name.to_owned(), clients.clone());
        self.contents.commits.insert(name.to_owned(), self.commit.clone());
        self.write()?;
        Ok(Round { commit: self.commit.clone(), clients })
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
        let open = |command| Kept::open(dir.path(), command, "0123456789abcdef", "c0ffee");
        let mut kept = open("a");
        kept.add("eke, 124 MiB, round 1", vec![Measurement::default()]).unwrap();
        assert_eq!(open("a").round("eke, 124 MiB, round 1").map(|r| r.clients.len()), Some(1));
        open("a").check(false).unwrap();
        assert!(open("b").round("eke, 124 MiB, round 1").is_none());
        open("b").add("eke, 124 MiB, round 1", vec![]).unwrap();
        forget(dir.path(), "a");
        assert!(open("a").round("eke, 124 MiB, round 1").is_none());
        assert!(open("b").round("eke, 124 MiB, round 1").is_some(), "another command's");
    }

    #[test]
    fn rounds_of_other_code_are_continued_only_on_demand_and_keep_their_commit() {
        let dir = tempfile::tempdir().unwrap();
        let open = |commit| Kept::open(dir.path(), "a", "0", commit);
        open("old").add("first", vec![]).unwrap();
        let error = open("new").check(false).unwrap_err().to_string();
        assert!(error.contains("commit old") && error.contains("--any-commit"), "{error}");
        let mut kept = open("new");
        kept.check(true).unwrap();
        kept.add("second", vec![]).unwrap();
        assert_eq!(["first", "second"].map(|name| open("new").round(name).unwrap().commit), ["old", "new"]);
        let changed = Kept::open(dir.path(), "b", "0", "old-dirty").add("first", vec![]);
        assert_eq!(changed.unwrap().commit, "old-dirty");
        assert!(
            Kept::open(dir.path(), "b", "0", "old-dirty").check(false).is_err(),
            "no changed tree is another"
        );
    }

    #[test]
    fn rounds_of_before_commits_were_kept_are_of_unknown_code() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Kept::open(dir.path(), "a", "0", "new");
        eke_vm::write_scratch(&kept.path, br#"{"rounds":{"first":[]}}"#).unwrap();
        let kept = Kept::open(dir.path(), "a", "0", "new");
        assert_eq!(kept.round("first").unwrap().commit, UNKNOWN);
        assert!(kept.check(false).is_err());
    }
}
