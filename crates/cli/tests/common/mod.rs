//! What the tests of the built program share.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod clean;
pub mod pdf;
pub mod terminal;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use eke_testkit::wait::wait_at_most;

/// What a run of `eke` gave.
#[derive(Debug)]
pub struct Ran {
    pub stdout: String,
    pub stderr: String,
    pub status: Option<i32>,
}

impl Ran {
    /// All three, for a snapshot.
    pub fn shown(&self) -> String {
        format!(
            "{}--- stderr\n{}--- status {}",
            self.stdout,
            self.stderr,
            self.status.map_or("none".into(), |s| s.to_string())
        )
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("not JSON ({e}): {}{}", self.stdout, self.stderr))
    }
}

impl From<Output> for Ran {
    fn from(o: Output) -> Self {
        let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
        Self { stdout: text(&o.stdout), stderr: text(&o.stderr), status: o.status.code() }
    }
}

pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_eke"));
    command.args(args).stdin(Stdio::null());
    command
}

pub fn eke(args: &[&str]) -> Ran {
    command(args).output().expect("eke starts").into()
}

/// Killed where the test fails.
struct Experiment<'a>(&'a mut Child);

impl Drop for Experiment<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.kill();
        }
    }
}

/// Waits until an experiment is so far; `false` if it ended before.
pub fn until_begun(child: &mut Child, mut is_begun: impl FnMut() -> bool) -> bool {
    let experiment = Experiment(child);
    wait_at_most(Duration::from_secs(300), "the experiment to begin", || {
        if is_begun() { Some(true) } else { experiment.0.try_wait().unwrap().map(|_| false) }
    })
}

/// Another command, which runs `eke`.
pub fn ran(command: &mut Command) -> Ran {
    command.stdin(Stdio::null()).output().expect("the command starts").into()
}

/// The two programs where nobody may run them from.
pub struct Public {
    dir: tempfile::TempDir,
}

impl Public {
    pub fn new() -> Self {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a temporary directory");
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).expect("chmod");
        // By a process of its own: what this one has open for writing a child of another test may have, too, and is not executed then (ETXTBSY).
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_eke")).arg(dir.path().join("eke")).status();
        assert!(copied.expect("cp starts").success());
        Self { dir }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("eke")
    }

    /// As nobody; only root can become that one.
    pub fn as_nobody(&self, args: &[&str]) -> Ran {
        let mut command = Command::new(self.path());
        command.args(args).stdin(Stdio::null()).current_dir("/").uid(65534).gid(65534);
        command.output().expect("eke starts").into()
    }
}

/// The browser of the tests of pages.
pub const CHROMIUM: &str = "/usr/bin/chromium";

/// A page in a headless browser of its own, whose console comes on standard error.
pub fn chromium(page: &Path, args: &[&str]) -> Ran {
    let profile = tempfile::tempdir().expect("a temporary directory");
    let mut browser = Command::new(CHROMIUM);
    browser.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]);
    browser.args(["--enable-logging=stderr", "--v=0"]).args(args);
    browser.arg(format!("--user-data-dir={}", profile.path().display()));
    browser.arg(format!("file://{}", page.display())).stdin(Stdio::null());
    browser.output().expect("chromium starts").into()
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The agent's program, which cargo does not build for this crate's tests.
pub fn build_agent() {
    static BUILT: std::sync::Once = std::sync::Once::new();
    BUILT.call_once(|| build(&["-p", "eke-agent"]));
}

/// The same for the program that measures latencies.
pub fn build_io() {
    static BUILT: std::sync::Once = std::sync::Once::new();
    BUILT.call_once(|| build(&["-p", "eke-io"]));
}

/// The same for the program that serves a compressed page cache, as a path.
pub fn build_cache() -> PathBuf {
    static BUILT: std::sync::Once = std::sync::Once::new();
    BUILT.call_once(|| build(&["-p", "eke-cache-serve", "--bin", "eke-cache"]));
    PathBuf::from(env!("CARGO_BIN_EXE_eke")).with_file_name("eke-cache")
}

/// Beside `eke`.
fn build(what: &[&str]) {
    let exe = PathBuf::from(env!("CARGO_BIN_EXE_eke"));
    let mut build = Command::new(env!("CARGO"));
    build.arg("build").args(what).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    if exe.parent().is_some_and(|d| d.ends_with("release")) {
        build.arg("--release");
    }
    assert!(build.status().expect("cargo runs").success(), "{what:?} does not build");
}

/// Everything that eke may change, as text.
pub fn machine() -> String {
    let mut out = String::new();
    let read = |p: &Path| std::fs::read_to_string(p).unwrap_or_default();
    for file in ["/proc/sys/vm/swappiness", "/proc/sys/vm/page-cluster"] {
        out += &format!("{file}: {}", read(file.as_ref()));
    }
    for dir in ["/sys/module/zswap/parameters", "/sys/block"] {
        let mut entries: Vec<PathBuf> =
            std::fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path()).collect();
        entries.sort();
        for entry in entries {
            out += &format!("{}: {}\n", entry.display(), read(&entry).trim());
        }
    }
    let mounts = read("/proc/mounts".as_ref());
    // Used shrinks and grows by itself
    let swaps: Vec<String> = read("/proc/swaps".as_ref())
        .lines()
        .map(|l| l.split_whitespace().take(3).collect::<Vec<_>>().join(" "))
        .collect();
    // A slow disk of the lab's or a cache of another test's may come and go beside a test.
    let comes_and_goes = |l: &&str| l.starts_with("eke-slow-disk") || l.contains(" fuse.eke-cache ");
    let mounts: Vec<&str> = mounts.lines().filter(|l| !comes_and_goes(l)).collect();
    out + &swaps.join("\n") + "\n" + &mounts.join("\n")
}
