//! A mount for one test, by the real `eke-cache`; gone when dropped, also when the test fails.

use std::fs::{File, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use eke_cache_mounts::settings::{Compress, Memory, PassthroughMode, Settings};
use eke_model::units::Bytes;
use eke_testkit::wait::wait_for;
use rustix::mount::{UnmountFlags, unmount};
use tempfile::TempDir;

use super::LONG;

/// What a mounted file system needs of this machine.
pub const NEEDS: [&str; 1] = ["/dev/fuse"];

/// A directory tree that is served.
pub struct Mount {
    backing: PathBuf,
    place: PathBuf,
    server: Child,
    log: PathBuf,
    /// Removed after all else.
    scratch: TempDir,
}

impl Mount {
    /// Of a new directory on the disk of this machine's temporary files.
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    /// The same, with other settings.
    pub fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let scratch = scratch();
        let backing = directory(scratch.path(), "below");
        Self::start(scratch, &backing, change)
    }

    /// Of a directory that is there.
    pub fn of(backing: &Path, change: impl FnOnce(&mut Settings)) -> Self {
        Self::start(scratch(), backing, change)
    }

    /// Of a new directory, with more words for the program, and no more open files for it than these.
    pub fn with_words(words: &[&str], most_open: Option<u64>, change: impl FnOnce(&mut Settings)) -> Self {
        let scratch = scratch();
        let backing = directory(scratch.path(), "below");
        Self::serve(scratch, &backing, words, most_open, change)
    }

    /// Of a directory that is there, with more words for the program.
    pub fn of_with_words(backing: &Path, words: &[&str]) -> Self {
        Self::serve(scratch(), backing, words, None, |_| {})
    }

    fn start(scratch: TempDir, backing: &Path, change: impl FnOnce(&mut Settings)) -> Self {
        Self::serve(scratch, backing, &[], None, change)
    }

    fn serve(
        scratch: TempDir,
        backing: &Path,
        words: &[&str],
        most_open: Option<u64>,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let place = directory(scratch.path(), "place");
        let mut settings = settings(backing, &place);
        change(&mut settings);
        let log = scratch.path().join("log");
        let program = env!("CARGO_BIN_EXE_eke-cache");
        let mut command = Command::new(if most_open.is_some() { "prlimit" } else { program });
        if let Some(most) = most_open {
            command.arg(format!("--nofile={most}:{most}")).arg(program);
        }
        command.arg("serve").args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = command.stderr(File::create(&log).unwrap()).spawn().unwrap();
        serde_json::to_writer(server.stdin.take().unwrap(), &settings).unwrap();
        let mount = Self { backing: backing.to_owned(), place, server, log, scratch };
        mount.ready()
    }

    fn ready(mut self) -> Self {
        let said = first_line(self.server.stdout.take().unwrap());
        assert!(said.as_ref().is_some_and(|s| s.contains("\"ready\"")), "{said:?}: {}", self.said());
        assert!(is_mounted(&self.place), "{said:?} but nothing is mounted: {}", self.said());
        self
    }

    fn ends_within(&mut self, hundredths: u32) -> bool {
        (0..hundredths).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            matches!(self.server.try_wait(), Ok(Some(_)))
        })
    }

    fn process(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_raw(self.server.id() as i32).unwrap()
    }

    /// Kills the worker, and waits for the next one.
    pub fn kill_worker(&self) {
        let Some(worker) = child_of(self.server.id()) else { return };
        let pid = rustix::process::Pid::from_raw(worker as i32).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        let next = || child_of(self.server.id()).is_some_and(|pid| pid != worker);
        wait_for("another worker", next);
        // It is ready when it has answered.
        let _ = std::fs::metadata(self.place.join(format!("nothing after {worker}")));
    }

    /// The backing directory.
    pub fn backing(&self) -> &Path {
        &self.backing
    }

    /// Where it is served.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// A directory beside both, on the same file system as [`Mount::new`]'s directory below.
    pub fn beside(&self, name: &str) -> PathBuf {
        directory(self.scratch.path(), name)
    }

    /// What the server wrote to its standard error.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        while is_mounted(&self.place) {
            if unmount(&self.place, UnmountFlags::DETACH).is_err() {
                let _ = Command::new("fusermount3").arg("-uz").arg(&self.place).status();
                break;
            }
        }
        // A mount namespace that was copied meanwhile holds the mount too, and the server serves it until it is told to end,
        // twice if it is in use.
        let mut ended = self.ends_within(200);
        for hundredths in [500, 2500] {
            if !ended {
                let _ = rustix::process::kill_process(self.process(), rustix::process::Signal::TERM);
                ended = self.ends_within(hundredths);
            }
        }
        let _ = self.server.kill();
        let _ = self.server.wait();
        let said = self.said();
        if std::thread::panicking() {
            eprintln!("eke-cache said:\n{said}");
        } else {
            assert!(ended, "eke-cache did not end with its mount: {said}");
        }
    }
}

/// A file system of memory for one test, gone when dropped.
pub struct InMemory(pub PathBuf);

impl InMemory {
    /// With room for so much.
    pub fn new(place: &Path, kib: u32) -> Self {
        run("mount", &["-t", "tmpfs", "-o", &format!("size={kib}k"), "tmpfs", place.to_str().unwrap()]);
        Self(place.to_owned())
    }
}

impl Drop for InMemory {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

/// Runs one of the machine's programs.
pub fn run(program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A directory that every user may enter.
pub fn scratch() -> TempDir {
    let dir = tempfile::Builder::new().prefix("eke-cachefs-").tempdir().unwrap();
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    dir
}

fn directory(parent: &Path, name: &str) -> PathBuf {
    let path = parent.join(name);
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn settings(backing: &Path, place: &Path) -> Settings {
    Settings {
        dir: backing.to_owned(),
        place: place.to_owned(),
        memory: Memory::Bytes(Bytes::mib(64)),
        compress: Compress::Sync,
        others: true,
        passthrough: PassthroughMode::Never,
        watch: false,
    }
}

fn first_line(from: impl std::io::Read + Send + 'static) -> Option<String> {
    let (told, line) = channel();
    std::thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = String::new();
        let read = from.read_line(&mut line);
        let _ = told.send(read.is_ok_and(|n| n > 0).then_some(line));
        // what else it says must not block it
        let _ = std::io::copy(&mut from, &mut std::io::sink());
    });
    line.recv_timeout(LONG).ok().flatten()
}

fn is_mounted(place: &Path) -> bool {
    // others' places may be any bytes
    let mounts = std::fs::read("/proc/self/mounts").unwrap();
    String::from_utf8_lossy(&mounts).lines().any(|line| line.split(' ').nth(1) == place.to_str())
}

/// The worker of a supervisor: its child with a worker's name.
fn child_of(parent: u32) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    let is_worker = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.contains("(eke-cache-work) ") && !stat.contains(") Z ")
    };
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).find(is_worker)
}
