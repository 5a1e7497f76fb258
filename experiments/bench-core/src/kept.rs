//! Measurements of an interrupted experiment: the same command continues where it ended.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use eke_results::report::provenance::{OtherCommits, UNKNOWN, refuse_others};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::fault::{Io, on};

/// The measurements so far, in a file of the cache.
#[derive(Debug)]
pub struct Kept<M> {
    path: PathBuf,
    /// That of this program.
    commit: String,
    contents: Contents<M>,
}

/// What one run measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured<M> {
    /// The commit of the program that measured it.
    pub commit: String,
    /// The measurement.
    pub of: M,
}

#[derive(Debug, Serialize, Deserialize)]
struct Contents<M> {
    /// By the names of runs.
    rounds: BTreeMap<String, M>,
    /// The commits of runs. Files of before December 2026 have none.
    #[serde(default)]
    commits: BTreeMap<String, String>,
}

/// Why measurements are not continued, or not kept.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// They are of other code.
    #[error("{path} has {of}. Or remove the file")]
    Others {
        /// The file.
        path: String,
        /// The commits.
        of: OtherCommits,
    },
    /// The file cannot be written.
    #[error(transparent)]
    File(#[from] Io),
    /// A measurement has no JSON.
    #[error("a measurement has no JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl<M: Clone + Serialize + DeserializeOwned> Kept<M> {
    /// What an earlier run of this command left in the cache; `key` names what it was measured with, such as an image.
    #[must_use]
    pub fn open(cache: &Path, command: &str, key: &str, commit: &str) -> Self {
        let path = cache.join(format!("{}{key}.json", beginning(command)));
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let nothing = Contents { rounds: BTreeMap::new(), commits: BTreeMap::new() };
        Self { path, commit: commit.to_owned(), contents: serde_json::from_str(&text).unwrap_or(nothing) }
    }

    /// Refuses measurements of other code, unless `any_commit`.
    ///
    /// # Errors
    /// There are such measurements.
    pub fn check(&self, any_commit: bool) -> Result<(), Error> {
        let commits = self.contents.rounds.keys().map(|name| self.commit_of(name));
        let path = self.path.display().to_string();
        refuse_others(&self.commit, commits, any_commit).map_err(|of| Error::Others { path, of })
    }

    fn commit_of(&self, name: &str) -> &str {
        self.contents.commits.get(name).map_or(UNKNOWN, String::as_str)
    }

    /// What the run of this name measured.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Measured<M>> {
        let of = self.contents.rounds.get(name)?.clone();
        Some(Measured { commit: self.commit_of(name).to_owned(), of })
    }

    /// Keeps what this program measured.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, name: &str, of: M) -> Result<Measured<M>, Error> {
        self.contents.rounds.insert(name.to_owned(), of.clone());
        self.contents.commits.insert(name.to_owned(), self.commit.clone());
        replace(&self.path, &serde_json::to_string(&self.contents)?)?;
        Ok(Measured { commit: self.commit.clone(), of })
    }
}

/// Removes what was kept of this command, of all keys.
pub fn forget(cache: &Path, command: &str) {
    let beginning = beginning(command);
    for entry in std::fs::read_dir(cache).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&beginning) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Replaces a file as a whole; its directory is made.
///
/// # Errors
/// The file system refuses; the old file is as before.
pub fn replace(path: &Path, text: &str) -> Result<(), Io> {
    let directory = path.parent().unwrap_or(Path::new(""));
    std::fs::create_dir_all(directory).map_err(on("make the directory", directory))?;
    let new = path.with_extension("new");
    let mut options = std::fs::OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&new).map_err(on("create", &new))?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(on("write", &new))?;
    std::fs::rename(&new, path).map_err(on("replace", path))
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
    fn the_same_command_with_the_same_key_continues() {
        let dir = tempfile::tempdir().unwrap();
        let open =
            |command| Kept::<u32>::open(&dir.path().join("new"), command, "0123456789abcdef", "c0ffee");
        open("a").add("eke, 124 MiB, round 1", 7).unwrap();
        assert_eq!(open("a").get("eke, 124 MiB, round 1").map(|measured| measured.of), Some(7));
        open("a").check(false).unwrap();
        assert!(open("b").get("eke, 124 MiB, round 1").is_none());
        open("b").add("eke, 124 MiB, round 1", 8).unwrap();
        forget(&dir.path().join("new"), "a");
        assert!(open("a").get("eke, 124 MiB, round 1").is_none());
        assert!(open("b").get("eke, 124 MiB, round 1").is_some(), "another command's");
    }

    #[test]
    fn runs_of_other_code_are_continued_only_on_demand_and_keep_their_commit() {
        let dir = tempfile::tempdir().unwrap();
        let open = |commit| Kept::<u32>::open(dir.path(), "a", "0", commit);
        open("old").add("first", 1).unwrap();
        let error = open("new").check(false).unwrap_err().to_string();
        assert!(error.contains("commit old") && error.contains("--any-commit"), "{error}");
        let mut kept = open("new");
        kept.check(true).unwrap();
        kept.add("second", 2).unwrap();
        assert_eq!(["first", "second"].map(|name| open("new").get(name).unwrap().commit), ["old", "new"]);
        let changed = |command| Kept::<u32>::open(dir.path(), command, "0", "old-dirty");
        assert_eq!(changed("b").add("first", 1).unwrap().commit, "old-dirty");
        assert!(changed("b").check(false).is_err(), "no changed tree is another");
    }

    #[test]
    fn runs_of_before_commits_were_kept_are_of_unknown_code() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Kept::<u32>::open(dir.path(), "a", "0", "new");
        replace(&open().path, r#"{"rounds":{"first":1}}"#).unwrap();
        assert_eq!(open().get("first").unwrap().commit, UNKNOWN);
        assert!(open().check(false).is_err());
    }
}
