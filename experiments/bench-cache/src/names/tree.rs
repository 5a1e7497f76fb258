//! The files, and a repository of git among them.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use eke_apply::state::make_dir;
use eke_bench_core::Environment;
use eke_bench_core::command::output;
use eke_bench_core::fault::on;
use tempfile::TempDir;

use super::{Error, Options};

/// Files in a directory, and directories in one above them.
const IN_ONE: u32 = 100;
/// One in so many files belongs to the repository.
const IN_REPOSITORY: u32 = 20;
/// Attributes of files that changed within the last minute are not kept by the kernel.
const AGE: Duration = Duration::from_secs(61);

/// A directory of files. Drop removes it.
pub struct Tree<'e> {
    pub(super) environment: &'e Environment<'e>,
    /// The number of files, without git's own.
    pub(super) count: u32,
    /// Is there a repository?
    pub(super) has_repository: bool,
    dir: TempDir,
}

impl<'e> Tree<'e> {
    /// Makes the files.
    pub(super) fn make(
        environment: &'e Environment<'e>,
        options: &Options,
        notes: &mut Vec<String>,
    ) -> Result<Self, Error> {
        let dir = TempDir::with_prefix_in("eke-bench-", &options.dir)
            .map_err(on("make a directory in", &options.dir))?;
        let mut tree = Self { environment, count: options.files, has_repository: false, dir };
        tree.make_dir(&tree.place())?;
        let of_repository = options.files / IN_REPOSITORY;
        tree.write(&tree.repository(&tree.files()), of_repository)?;
        tree.write(&tree.files().join("many"), options.files - of_repository)?;
        if output(Command::new("git").arg("--version")).is_ok() {
            tree.commit_all()?;
            tree.has_repository = true;
        } else {
            notes.push("git is not installed: nothing of it is measured.".to_owned());
        }
        if !options.quick {
            tree.wait(AGE)?;
        }
        Ok(tree)
    }

    /// The files.
    pub(super) fn files(&self) -> PathBuf {
        self.dir.path().join("files")
    }

    /// The mount point.
    pub(super) fn place(&self) -> PathBuf {
        self.dir.path().join("mount")
    }

    /// The repository among the files at `files`.
    pub(super) fn repository(&self, files: &Path) -> PathBuf {
        files.join("repository")
    }

    /// git in a repository, with no settings of the user's or the machine's.
    pub(super) fn git(&self, repository: &Path) -> Command {
        let mut git = Command::new("git");
        git.arg("-C").arg(repository).args(["-c", "user.name=eke", "-c", "user.email=eke@localhost"]);
        // It would pack objects in the background while other things are timed.
        git.args(["-c", "gc.auto=0", "-c", "maintenance.auto=false"]);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        git
    }

    fn make_dir(&self, dir: &Path) -> Result<(), Error> {
        Ok(make_dir(self.environment.root, dir, 0o755).map_err(on("make", dir))?)
    }

    fn write(&self, top: &Path, count: u32) -> Result<(), Error> {
        for number in 0..count {
            let dir =
                top.join((number / IN_ONE / IN_ONE).to_string()).join((number / IN_ONE % IN_ONE).to_string());
            if number % IN_ONE == 0 {
                self.make_dir(&dir)?;
                self.stop_if_interrupted()?;
            }
            let path = dir.join(format!("file {number}.txt"));
            let mut file =
                OpenOptions::new().write(true).create_new(true).open(&path).map_err(on("make", &path))?;
            writeln!(file, "This is file {number}.").map_err(on("write", &path))?;
        }
        Ok(())
    }

    fn commit_all(&self) -> Result<(), Error> {
        let repository = self.repository(&self.files());
        for words in [&["init", "-q"][..], &["add", "."], &["commit", "-q", "-m", "all"]] {
            output(self.git(&repository).args(words))?;
        }
        Ok(())
    }

    pub(super) fn stop_if_interrupted(&self) -> Result<(), Error> {
        if self.environment.is_interrupted() { Err(Error::Interrupted) } else { Ok(()) }
    }

    fn wait(&self, time: Duration) -> Result<(), Error> {
        for _ in 0..time.as_secs() {
            self.stop_if_interrupted()?;
            std::thread::sleep(Duration::from_secs(1));
        }
        Ok(())
    }
}
