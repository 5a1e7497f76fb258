//! Runs programs and captures their output.

#![allow(clippy::expect_used, clippy::panic, reason = "functions of tests, which fail by it")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// The output and exit status of a program.
#[derive(Debug)]
pub struct Ran {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The exit status; `None` after a signal.
    pub status: Option<i32>,
}

impl Ran {
    /// All three as text, for a snapshot.
    pub fn shown(&self) -> String {
        format!(
            "{}--- stderr\n{}--- status {}",
            self.stdout,
            self.stderr,
            self.status.map_or("none".into(), |s| s.to_string())
        )
    }

    /// Standard output as JSON.
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

/// Runs a command to its end.
pub fn ran(command: &mut Command) -> Ran {
    command.stdin(Stdio::null()).output().expect("the command starts").into()
}

/// A process. Drop kills it and waits for it.
#[derive(Debug)]
pub struct KilledOnDrop(pub Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The browser for tests of pages.
pub const CHROMIUM: &str = "/usr/bin/chromium";

/// Opens a page in a headless browser with a profile of its own; the console goes to standard error.
pub fn chromium(page: &Path, args: &[&str]) -> Ran {
    let profile = tempfile::tempdir().expect("a temporary directory");
    let mut browser = Command::new(CHROMIUM);
    browser.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]);
    browser.args(["--enable-logging=stderr", "--v=0"]).args(args);
    browser.arg(format!("--user-data-dir={}", profile.path().display()));
    browser.arg(format!("file://{}", page.display())).stdin(Stdio::null());
    browser.output().expect("chromium starts").into()
}

/// Whether this test runs as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Builds packages with cargo in the profile of the program `beside`, into its directory. Tests of the whole workspace (`make test`) have
/// built all programs already and say so by `EKE_PROGRAMS=built`: a build of one package has other features, and would take minutes.
pub fn build_beside(beside: &Path, cargo: &Path, what: &[&str]) {
    if std::env::var("EKE_PROGRAMS").is_ok_and(|programs| programs == "built") {
        return;
    }
    let mut build = Command::new(cargo);
    build.arg("build").args(what).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    if beside.parent().is_some_and(|d| d.ends_with("release")) {
        build.arg("--release");
    }
    assert!(build.status().expect("cargo runs").success(), "{what:?} does not build");
}

/// All state that eke may change, as text.
pub fn machine() -> String {
    let mut out = String::new();
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
    // The used size changes by itself.
    let swaps: Vec<String> = read("/proc/swaps".as_ref())
        .lines()
        .map(|l| l.split_whitespace().take(3).collect::<Vec<_>>().join(" "))
        .collect();
    out + &swaps.join("\n") + "\n" + &mounts().join("\n")
}

/// The mounts of this process, without those that come and go beside a test: slow disks, caches, and whatever other tests mount in their
/// temporary directories (the prefix is `tempfile`'s).
pub fn mounts() -> Vec<String> {
    let comes_and_goes =
        |l: &&str| l.starts_with("eke-slow-disk") || l.contains(" fuse.eke-cache ") || l.contains("/.tmp");
    read("/proc/self/mounts".as_ref()).lines().filter(|l| !comes_and_goes(l)).map(str::to_owned).collect()
}

/// The text of a file; paths in it, such as those where other tests mount, may have any bytes.
fn read(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}
