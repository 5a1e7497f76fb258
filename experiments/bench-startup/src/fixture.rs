//! What every run needs: the disk, the screen, the home directory.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use eke_bench_core::Environment;
use eke_bench_core::fault::on;
use eke_bench_desktop::desktop::User;
use eke_bench_desktop::desktop::bare::{Screen, directory};
use tempfile::TempDir;

use super::Options;
use super::disk::{ProgramDisk, Reads};
use super::error::{Error, Result};
use super::launch::Spec;
use super::launcher::{self, Ready, Running};
use super::programs::Program;

const TICK: Duration = Duration::from_millis(50);

/// How a program is launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct How<'a> {
    /// Use the arguments with which the program keeps running.
    pub staying: bool,
    /// Sample its maps during the launch.
    pub maps: bool,
    /// Run under strace, with this output file.
    pub traced: Option<&'a Path>,
}

/// A launch and its reads.
#[derive(Debug)]
pub struct Launched {
    /// The program, which runs unless it ended by itself.
    pub running: Running,
    /// Reads from the disk during the launch.
    pub reads: Reads,
}

/// See the module.
pub struct DiskFixture<'a> {
    /// The experiment's environment.
    pub environment: &'a Environment<'a>,
    /// What the user asks for.
    pub options: &'a Options,
    /// The disk.
    pub disk: ProgramDisk,
    screen: Rc<Screen>,
    home: Rc<Home>,
    document: Option<String>,
}

/// The programs' home directory. Files of a first start stay there for the next one, as in a user's home.
#[derive(Debug)]
pub struct Home(TempDir);

impl Home {
    /// Makes an empty home directory with the key to the screen.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn make(screen: &Screen) -> Result<Self> {
        let temporary = std::env::temp_dir();
        let home = Self(directory().map_err(on("make a directory in", &temporary))?);
        let (from, to) = (screen.key(), home.0.path().join(".Xauthority"));
        let key = std::fs::read(&from).map_err(on("read", &from))?;
        let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&to);
        file.and_then(|mut file| file.write_all(&key)).map_err(on("write", &to))?;
        for path in [to.as_path(), home.0.path()] {
            let User { uid, gid } = User::NOBODY;
            std::os::unix::fs::chown(path, Some(uid), Some(gid)).map_err(on("give away", path))?;
        }
        Ok(home)
    }
}

impl<'a> DiskFixture<'a> {
    /// Attaches the image as a disk.
    ///
    /// # Errors
    /// As [`ProgramDisk::attach`].
    pub(crate) fn set(
        environment: &'a Environment<'a>,
        options: &'a Options,
        image: &Path,
        disk: Option<&str>,
        (screen, home): (Rc<Screen>, Rc<Home>),
        document: Option<String>,
    ) -> Result<Self> {
        let disk = ProgramDisk::attach(environment.root, image, disk)?;
        Ok(Self { environment, options, disk, screen, home, document })
    }

    /// Prepares a launch: everything except the exec.
    ///
    /// # Errors
    /// The tree cannot be entered.
    pub fn prepare(&self, program: &Program, how: How<'_>) -> Result<Ready<'a>> {
        let document = self.document.as_deref();
        let spec = Spec {
            tree: self.disk.dir(),
            home: self.home.0.path().to_owned(),
            display: self.screen.display(),
            executable: program.executable().unwrap_or_default().to_owned(),
            arguments: if how.staying { program.staying(document) } else { program.arguments(document) },
            until: if how.staying { program.until_staying() } else { program.until },
            patience_s: self.options.patience.as_secs(),
            maps: how.maps,
        };
        let (eke, shutdown) = (&self.environment.program, self.environment.shutdown);
        launcher::prepare(eke, program.name, &spec, &self.screen.key(), how.traced, shutdown)
    }

    /// Prepares and launches a program.
    ///
    /// # Errors
    /// The launch failed.
    pub fn launch(&self, program: &Program, how: How<'_>) -> Result<Launched> {
        self.go(self.prepare(program, how)?)
    }

    /// Launches a prepared program.
    ///
    /// # Errors
    /// The launch failed.
    pub fn go(&self, ready: Ready<'_>) -> Result<Launched> {
        let before = self.disk.reads();
        let running = ready.go()?;
        Ok(Launched { running, reads: self.disk.reads() - before })
    }

    /// The path of a program of the tree, as seen from outside.
    pub fn outside(&self, program: &Program) -> PathBuf {
        let executable = program.executable().unwrap_or_default();
        let inside = Path::new(executable).strip_prefix("/").unwrap_or(executable.as_ref());
        let path = self.disk.dir().join(inside);
        real_path(&self.disk.dir(), &path)
    }

    /// The same, as seen from inside.
    pub fn inside(&self, program: &Program) -> String {
        let (outside, tree) = (self.outside(program), self.disk.dir());
        outside
            .strip_prefix(&tree)
            .map_or_else(|_| outside.display().to_string(), |path| format!("/{}", path.display()))
    }

    /// Sleeps.
    ///
    /// # Errors
    /// A signal came.
    pub fn sleep(&self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            self.check()?;
            std::thread::sleep(left.min(TICK));
        }
        self.check()
    }

    /// Checks for a signal.
    ///
    /// # Errors
    /// A signal came.
    pub fn check(&self) -> Result<()> {
        if self.environment.is_interrupted() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// The path as in `/proc/PID/exe`: follows a link in the last component (python3 to python3.11).
fn real_path(tree: &Path, path: &Path) -> PathBuf {
    match std::fs::read_link(path) {
        Ok(to) if to.is_absolute() => tree.join(to.strip_prefix("/").unwrap_or(&to)),
        Ok(to) => path.parent().unwrap_or(tree).join(to),
        Err(_) => path.to_owned(),
    }
}
