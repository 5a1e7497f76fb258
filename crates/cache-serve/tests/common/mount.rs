//! A mount for one test. Drop unmounts it, also when the test fails.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::mpsc::channel;

use eke_cache_mounts::settings::{Compress, Memory, PassthroughMode, Settings};
use eke_model::units::Bytes;
use eke_testkit::wait::wait_for;
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::Signal;
use tempfile::TempDir;

use super::LONG;
use super::server::{Server, kill};

/// A backing directory and a mount of it.
pub struct Mount {
    backing: PathBuf,
    place: PathBuf,
    /// Its processes.
    pub server: Server,
    /// Contains the directories; removed after all else.
    scratch: TempDir,
}

/// How a mount is made. The default: a new backing directory on the disk of the temporary files, and a mount point beside it.
#[derive(Default)]
pub struct MountSpec<'a> {
    /// An existing backing directory.
    pub backing: Option<&'a Path>,
    /// Mount over the backing directory itself.
    pub over_itself: bool,
    /// Further arguments of the program.
    pub args: &'a [&'a str],
    /// Limits of the shell that starts it, as of prlimit(1).
    pub limits: &'a [&'a str],
    /// Fills the backing directory before the mount.
    pub fill: Option<fn(&Path)>,
}

impl Mount {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    /// With other settings.
    pub fn with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::start(&MountSpec::default(), change)
    }

    /// Of an existing directory.
    pub fn of(backing: &Path) -> Self {
        Self::start(&MountSpec { backing: Some(backing), ..MountSpec::default() }, |_| {})
    }

    pub fn start(spec: &MountSpec<'_>, change: impl FnOnce(&mut Settings)) -> Self {
        let scratch = scratch();
        let backing = spec.backing.map_or_else(|| directory(scratch.path(), "backing"), Path::to_owned);
        let place = if spec.over_itself { backing.clone() } else { directory(scratch.path(), "place") };
        spec.fill.into_iter().for_each(|fill| fill(&backing));
        let mut settings = settings(&backing, &place);
        change(&mut settings);
        let server = Server::start(&settings, spec.args, spec.limits).unwrap_or_else(|e| panic!("{e}"));
        let mount = Self { backing, place, server, scratch };
        assert!(mount.is_mounted(), "it is ready but nothing is mounted: {}", mount.server.log());
        mount
    }

    /// The backing directory.
    pub fn backing(&self) -> &Path {
        &self.backing
    }

    /// The mount point.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// A directory beside both, on the same file system as a new backing directory.
    pub fn beside(&self, name: &str) -> PathBuf {
        directory(self.scratch.path(), name)
    }

    pub fn is_mounted(&self) -> bool {
        // Names of other mounts may be any bytes.
        let mounts = std::fs::read("/proc/self/mounts").unwrap();
        let mounts = String::from_utf8_lossy(&mounts);
        mounts.lines().any(|line| line.split(' ').nth(1) == self.place.to_str())
    }

    /// Kills the worker, and waits for the next one.
    pub fn kill_worker(&self) {
        let Some(worker) = self.server.worker_now() else { return };
        kill(worker, Signal::KILL);
        wait_for("another worker", || self.server.worker_now().is_some_and(|pid| pid != worker));
        // It is ready when it has answered. It may hang, and this thread must not.
        let path = self.place.join(format!("nothing after {worker}"));
        let (send, answer) = channel();
        std::thread::spawn(move || send.send(std::fs::metadata(path).is_ok()));
        assert!(answer.recv_timeout(LONG).is_ok(), "the next worker does not answer");
    }

    /// Unmounts as umount(8) does. A process that another test starts has copies of this one's files until its execve(2).
    pub fn umount(&self) {
        let mut done = Err(Errno::BUSY);
        wait_for("the end of others' use of the mount", || {
            done = unmount(&self.place, UnmountFlags::empty());
            done != Err(Errno::BUSY)
        });
        done.unwrap();
    }

    /// Waits for the supervisor's exit.
    pub fn exit_status(&mut self) -> ExitStatus {
        wait_for("the supervisor's exit", || self.server.exit_status())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        while self.is_mounted() {
            if unmount(&self.place, UnmountFlags::DETACH).is_err() {
                let _ = Command::new("fusermount3").arg("-uz").arg(&self.place).status();
                break;
            }
        }
        // A copied mount namespace holds the mount, too. The server then serves that until a signal ends it: two if it is in use.
        let mut exited = self.server.exits_within(200);
        for hundredths in [500, 2500] {
            if !exited {
                kill(self.server.supervisor(), Signal::TERM);
                exited = self.server.exits_within(hundredths);
            }
        }
        let log = self.server.log();
        if std::thread::panicking() {
            eprintln!("eke-cache logged:\n{log}");
        } else {
            assert!(exited, "eke-cache did not exit with its mount: {log}");
        }
    }
}

/// A tmpfs for one test. Drop unmounts it.
pub struct InMemory(pub PathBuf);

impl InMemory {
    /// With room for so many KiB.
    pub fn new(place: &Path, kib: u32) -> Self {
        Self::of("tmpfs", place, &format!("size={kib}k"))
    }

    /// Of this kind, with these options of mount(8).
    pub fn of(kind: &str, place: &Path, options: &str) -> Self {
        run("mount", &["-t", kind, "-o", options, kind, place.to_str().unwrap()]);
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
    let output = eke_testkit::program::output(Command::new(program).args(args));
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

/// For all users, without passthrough and watch.
pub fn settings(backing: &Path, place: &Path) -> Settings {
    Settings {
        dir: backing.to_owned(),
        place: place.to_owned(),
        memory: Memory::Bytes(Bytes::mib(64)),
        compress: Compress::Sync,
        others: true,
        passthrough: PassthroughMode::Never,
        watch: false,
        names_s: 1,
        keep_mounted: true,
        remember: false,
        spill: None,
        shared: None,
    }
}
