//! What is timed.

use std::fs::{File, OpenOptions, Permissions, remove_file, set_permissions, symlink_metadata};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use eke_bench_core::command::output;
use eke_bench_core::fault::on;

use super::Error;
use super::report::{COMMITS, COPY, FIND, FIND_AGAIN, LIST, LIST_AGAIN, SEARCH, SEEN, STATUS, WRITE};
use super::tree::Tree;

/// Commits of one file.
const ROUNDS_OF_COMMITS: u32 = 50;
/// The size of the file of small writes.
const WRITTEN_BYTES: usize = 16 << 20;
/// The patience for a change of the files to show.
const SEEN_WITHIN: Duration = Duration::from_secs(10);

/// A value, with its metric and unit.
pub(super) type Measurement = (&'static str, &'static str, f64);

/// Work on the files in `dir`.
pub(super) struct Work<'a> {
    /// The files, or the mount.
    pub dir: &'a Path,
    /// The files below the mount.
    pub backing: Option<&'a Path>,
    pub tree: &'a Tree<'a>,
}

impl Work<'_> {
    /// Does everything once.
    pub(super) fn measure(&self) -> Result<Vec<Measurement>, Error> {
        let find = || self.time(Command::new("find").arg(self.dir));
        let list = || self.time(Command::new("ls").arg("-lR").arg(self.dir));
        let mut all = vec![(FIND, find()?), (FIND_AGAIN, find()?), (LIST, list()?), (LIST_AGAIN, list()?)];
        let repository = self.tree.repository(self.dir);
        if self.tree.has_repository {
            let status = || self.time(self.tree.git(&repository).args(["status", "--short"]));
            status()?;
            all.push((STATUS, status()?));
            all.push((COMMITS, self.commits(&repository)?));
        }
        let search = || self.time(Command::new("grep").args(["-r", "-c", "This is"]).arg(&repository));
        search()?;
        all.push((SEARCH, search()?));
        all.push((COPY, self.copy(&repository)?));
        all.push((WRITE, self.small_writes()?));
        let seen = self.backing.map(|backing| self.seen(backing)).transpose()?;
        let seen = seen.map(|seconds| (SEEN, "ms", seconds * 1e3));
        Ok(all.into_iter().map(|(metric, seconds)| (metric, "s", seconds)).chain(seen).collect())
    }

    /// The seconds that a program takes.
    fn time(&self, command: &mut Command) -> Result<f64, Error> {
        self.tree.stop_if_interrupted()?;
        let start = Instant::now();
        output(command)?;
        Ok(start.elapsed().as_secs_f64())
    }

    fn commits(&self, repository: &Path) -> Result<f64, Error> {
        let (start, path) = (Instant::now(), repository.join("0/0/file 0.txt"));
        for number in 0..ROUNDS_OF_COMMITS {
            let mut file = OpenOptions::new().append(true).open(&path).map_err(on("open", &path))?;
            writeln!(file, "Line {number}.").map_err(on("write", &path))?;
            self.time(self.tree.git(repository).args(["commit", "-q", "-a", "-m", "a line"]))?;
        }
        Ok(start.elapsed().as_secs_f64())
    }

    fn copy(&self, repository: &Path) -> Result<f64, Error> {
        let copy = self.dir.join("copy");
        let copied = self.time(Command::new("cp").arg("-r").args([repository, &copy]))?;
        Ok(copied + self.time(Command::new("rm").arg("-r").arg(&copy))?)
    }

    fn small_writes(&self) -> Result<f64, Error> {
        let (start, path) = (Instant::now(), self.dir.join("written"));
        let mut file = File::create_new(&path).map_err(on("create", &path))?;
        let piece = [b'x'; 512];
        for _ in 0..WRITTEN_BYTES / piece.len() {
            file.write_all(&piece).map_err(on("write", &path))?;
        }
        drop(file);
        let seconds = start.elapsed().as_secs_f64();
        remove_file(&path).map_err(on("remove", &path))?;
        Ok(seconds)
    }

    /// The seconds until a change of a file's mode below shows on the mount.
    fn seen(&self, backing: &Path) -> Result<f64, Error> {
        let file = Path::new("many/0/0/file 0.txt");
        let (below, above) = (backing.join(file), self.dir.join(file));
        let mode =
            || symlink_metadata(&above).map(|m| m.permissions().mode() & 0o777).map_err(on("read", &above));
        let changed = mode()? ^ 0o004;
        let start = Instant::now();
        set_permissions(&below, Permissions::from_mode(changed)).map_err(on("change", &below))?;
        while mode()? != changed {
            if start.elapsed() > SEEN_WITHIN {
                return Err(Error::NotSeen { path: below, seconds: SEEN_WITHIN.as_secs() });
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(start.elapsed().as_secs_f64())
    }
}
