//! What the tests of the built program share.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod clean;
pub mod pdf;

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use eke_testkit::program::build_beside;
use eke_testkit::wait::wait_at_most;

#[allow(unused_imports, reason = "each test file uses its part")]
pub use eke_testkit::program::{CHROMIUM, Ran, chromium, is_root, machine, output_of, ran};

/// `eke-bench` with these words.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_eke-bench"));
    command.args(args).stdin(Stdio::null());
    command
}

/// `eke-bench`, to its end.
pub fn bench(args: &[&str]) -> Ran {
    ran(&mut command(args))
}

/// The product's `eke`, to its end.
pub fn eke(args: &[&str]) -> Ran {
    ran(Command::new(build_eke()).args(args))
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

/// The program where nobody may run it from.
pub struct Public {
    dir: tempfile::TempDir,
}

impl Public {
    pub fn new() -> Self {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a temporary directory");
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).expect("chmod");
        // By a process of its own: what this one has open for writing a child of another test may have, too, and is not executed then (ETXTBSY).
        let own = env!("CARGO_BIN_EXE_eke-bench");
        let copied = Command::new("cp").arg(own).arg(dir.path().join("eke-bench")).status();
        assert!(copied.expect("cp starts").success());
        Self { dir }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("eke-bench")
    }

    /// As nobody; only root can become that one.
    pub fn as_nobody(&self, args: &[&str]) -> Ran {
        let mut command = Command::new(self.path());
        ran(command.args(args).current_dir("/").uid(65534).gid(65534))
    }
}

/// The product's program, which cargo does not build for this crate's tests.
pub fn build_eke() -> PathBuf {
    static BUILT: std::sync::Once = std::sync::Once::new();
    BUILT.call_once(|| build(&["-p", "eke-cli"]));
    beside("eke")
}

/// The program that serves a compressed page cache, and `eke`, which mounts it.
pub fn build_cache() -> PathBuf {
    static BUILT: std::sync::Once = std::sync::Once::new();
    BUILT.call_once(|| {
        build(&["-p", "eke-cli", "-p", "eke-cache-serve", "--bin", "eke", "--bin", "eke-cache"]);
    });
    beside("eke-cache")
}

/// The same with the program that a shared tier needs.
pub fn build_farm() {
    build_cache();
    build(&["-p", "eke-cache-engine", "--bin", "eke-cache-shared"]);
}

fn beside(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_eke-bench")).with_file_name(name)
}

/// Beside `eke-bench`.
fn build(what: &[&str]) {
    build_beside(env!("CARGO_BIN_EXE_eke-bench").as_ref(), env!("CARGO").as_ref(), what);
}
