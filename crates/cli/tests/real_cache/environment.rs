//! A directory to mount over, and the programs, run as root or as the user nobody.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use eke_testkit::program::{first_line, kill, output, ran};
use eke_testkit::real::lacking;
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Ran, build_cache};

/// The user nobody (and nogroup); needs root.
pub const NOBODY: u32 = 65534;

static ALONE: Mutex<()> = Mutex::new(());

/// A directory with `eke`, `eke-cache`, and a directory `data` with files, owned by the user who mounts.
pub struct Environment {
    /// One test at a time: a process in its own mount namespace holds copies of the mounts of other tests.
    _alone: MutexGuard<'static, ()>,
    dir: tempfile::TempDir,
    nobody: bool,
    /// A process with its own mount namespace, in which all programs run.
    inside: Option<Child>,
}

impl Environment {
    /// With this script as `eke-cache`.
    pub fn with_fake(script: &str) -> Self {
        let environment = Self::new(false);
        let fake = environment.path("bin/eke-cache");
        put(&fake, format!("#!/bin/sh\n{script}\n").as_bytes());
        std::fs::set_permissions(&fake, Permissions::from_mode(0o755)).unwrap();
        environment
    }

    /// With the real `eke-cache`, for root or the user nobody.
    pub fn real(nobody: bool) -> Self {
        let beside = build_cache();
        let environment = Self::new(nobody);
        copy(&beside, &environment.path("bin/eke-cache"));
        environment
    }

    pub fn new(nobody: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let environment = Self { _alone, dir, nobody, inside: None };
        for name in ["bin", "run", "data", "data/sub", "fast"] {
            std::fs::create_dir(environment.path(name)).unwrap();
        }
        copy(Path::new(env!("CARGO_BIN_EXE_eke")), &environment.path("bin/eke"));
        put(&environment.path("data/file"), "eke out. ".repeat(100_000).as_bytes());
        std::fs::set_permissions(environment.dir.path(), Permissions::from_mode(0o755)).unwrap();
        std::fs::set_permissions(environment.path("run"), Permissions::from_mode(0o700)).unwrap();
        if nobody {
            for name in ["run", "data", "data/sub", "data/file", "fast"] {
                std::os::unix::fs::chown(environment.path(name), Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        environment
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.program();
        command.arg(self.path("bin/eke")).arg("cache").args(args);
        // The list of what was hot would stay on this machine.
        if let ["mount", _, ..] = args {
            command.arg("--no-remember");
        }
        command
    }

    /// Runs its arguments as the user and among the mounts of this environment.
    pub fn program(&self) -> Command {
        let mut command = self.entered();
        self.as_user(&mut command);
        command
    }

    /// Runs its arguments among the mounts of this environment.
    fn entered(&self) -> Command {
        let mut command = Command::new(if self.inside.is_some() { "nsenter" } else { "env" });
        if let Some(inside) = &self.inside {
            command.args(["-t", &inside.id().to_string(), "-m", "--"]);
        }
        command.stdin(Stdio::null()).current_dir("/");
        command.env("XDG_RUNTIME_DIR", self.path("run")).env("LC_ALL", "C");
        command
    }

    fn as_user(&self, command: &mut Command) {
        if self.nobody {
            command.args(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        }
    }

    /// In its own mount namespace, where all users may open /dev/fuse, as udev sets it.
    pub fn with_open_device(self) -> Self {
        self.inside("mknod -m 666 \"$0/device\" c 10 229 && mount --bind \"$0/device\" /dev/fuse")
    }

    /// In its own mount namespace, where the programs are in /usr/local/bin, since mount.fuse3(8) has a search path of its own.
    pub fn with_installed_programs(self) -> Self {
        self.inside("mount --bind \"$0/bin\" /usr/local/bin")
    }

    /// In a new mount namespace after this script, which has the directory as `$0`.
    fn inside(mut self, script: &str) -> Self {
        let script = format!("{script} && echo ready && exec sleep 600");
        let mut unshare = Command::new("unshare");
        unshare.args(["-m", "--propagation", "private", "sh", "-c", &script]).arg(self.dir.path());
        let mut inside = unshare.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let out = inside.stdout.take().unwrap();
        self.inside = Some(inside);
        let ready = first_line(out);
        assert_eq!(ready, "ready\n");
        self
    }

    pub fn is_mounted(&self, place: &str) -> bool {
        let whose = self.inside.as_ref().map_or("self".to_owned(), |c| c.id().to_string());
        // Other tests mount at paths that are not UTF-8.
        let list = eke_linux::Root::host().read(format!("proc/{whose}/mountinfo")).unwrap();
        list.lines().any(|l| l.split(' ').nth(4) == Some(place))
    }

    /// `eke cache ...`.
    pub fn cache(&self, args: &[&str]) -> Ran {
        ran(&mut self.command(args))
    }

    /// All output, with the parts that differ from run to run replaced.
    pub fn shown(&self, ran: &Ran) -> String {
        let mut text = ran.shown().replace(self.dir.path().to_str().unwrap(), "DIRECTORY");
        for word in ["process", "worker", "in use:"] {
            text = without_numbers(&text, word);
        }
        text
    }

    /// In a mount namespace of its own, where `hidden` is `/dev/null`.
    pub fn cache_without(&self, hidden: &str, args: &[&str]) -> Ran {
        let script = format!("mount --bind /dev/null {hidden} && exec \"$@\"");
        let mut command = self.entered();
        command.args(["unshare", "-m", "--propagation", "private", "sh", "-c", &script, "sh"]);
        self.as_user(&mut command);
        command.arg(self.path("bin/eke")).arg("cache").args(args);
        ran(&mut command)
    }

    /// As the user who mounts: without allow_other the mount is that one's alone.
    pub fn read(&self, name: &str) -> Vec<u8> {
        output(self.program().arg("cat").arg(self.path(name))).stdout
    }

    /// Sockets that are left; root's are in the usual directory.
    pub fn sockets(&self) -> Vec<String> {
        let dir = self.path("run/eke/caches");
        let names = std::fs::read_dir(dir).into_iter().flatten().flatten();
        names
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .filter(|n| n != "log" && n != "turn")
            .collect()
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        if let Some(inside) = &mut self.inside {
            // Its mounts end with it.
            kill(inside);
        }
        for name in ["data", "fast"] {
            for _ in 0..3 {
                let _ = rustix::mount::unmount(self.path(name), rustix::mount::UnmountFlags::DETACH);
            }
        }
    }
}

/// The number after a word; for a list of processes the rest of the line.
fn without_numbers(text: &str, word: &str) -> String {
    let line = |line: &str| match line.split_once(word) {
        Some((before, after)) => {
            let number = |c: char| c.is_ascii_digit();
            let at = after.find(number).unwrap_or(after.len());
            let end = at + after[at..].find(|c| !number(c)).unwrap_or(after.len() - at);
            format!("{before}{word}{}N{}", &after[..at], &after[end..])
        }
        None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

pub fn put(path: &Path, bytes: &[u8]) {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).open(path).unwrap().write_all(bytes).unwrap();
}

/// A hard link if possible, since the programs are large; else a copy.
fn copy(from: &Path, to: &Path) {
    if std::fs::hard_link(from, to).is_err() {
        std::fs::copy(from, to).unwrap();
    }
}

pub fn signal(pid: u64, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

/// Root with FUSE, or the reason.
pub fn no_fuse() -> Option<String> {
    lacking(&["/dev/fuse"])
}
