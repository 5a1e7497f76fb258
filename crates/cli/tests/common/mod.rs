//! What the tests of the built program share.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod terminal;

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use eke_testkit::program::build_beside;
#[allow(unused_imports, reason = "each test file uses its part")]
pub use eke_testkit::program::{CHROMIUM, Ran, chromium, is_root, machine, ran};

/// Verbs that another program serves.
const OF_OTHERS: [&str; 6] = ["dash", "ltsp", "metrics", "prefetch", "record", "report"];
/// Those programs.
const OTHERS: [&str; 4] = ["eke-dash", "eke-ltsp", "eke-prefetch", "eke-record"];

pub fn command(args: &[&str]) -> Command {
    if args.iter().any(|arg| OF_OTHERS.contains(arg)) {
        build_others();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_eke"));
    command.args(args).stdin(Stdio::null());
    command
}

pub fn eke(args: &[&str]) -> Ran {
    ran(&mut command(args))
}

/// Copies of programs that the user nobody can run.
pub struct Public {
    dir: tempfile::TempDir,
}

impl Public {
    /// `eke` alone.
    pub fn new() -> Self {
        Self::of(&["eke"])
    }

    /// Also the programs that its verbs execute.
    pub fn with_others() -> Self {
        build_others();
        Self::of(&[&["eke"], &OTHERS[..]].concat())
    }

    fn of(programs: &[&str]) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a temporary directory");
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).expect("chmod");
        // Copied by another process: a child of another test could inherit the file open for writing (ETXTBSY).
        let eke = PathBuf::from(env!("CARGO_BIN_EXE_eke"));
        let files = programs.iter().map(|name| eke.with_file_name(name));
        let copied = Command::new("cp").args(files).arg(dir.path()).status();
        assert!(copied.expect("cp starts").success());
        Self { dir }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("eke")
    }

    /// Runs `eke` as the user nobody; needs root.
    pub fn as_nobody(&self, args: &[&str]) -> Ran {
        let mut command = Command::new(self.path());
        ran(command.args(args).current_dir("/").uid(65534).gid(65534))
    }
}

/// The programs that verbs execute, which cargo does not build for this crate's tests.
pub fn build_others() {
    static BUILT: std::sync::Once = std::sync::Once::new();
    BUILT.call_once(|| {
        build(&["-p", "eke-dash", "-p", "eke-ltsp", "-p", "eke-prefetchd", "-p", "eke-record"])
    });
}

/// The agent's program, which cargo does not build for this crate's tests.
pub fn build_agent() {
    static BUILT: std::sync::Once = std::sync::Once::new();
    BUILT.call_once(|| build(&["-p", "eke-agent"]));
}

/// The same for the laboratory's program.
pub fn build_bench() {
    static BUILT: std::sync::Once = std::sync::Once::new();
    BUILT.call_once(|| build(&["-p", "eke-bench"]));
}

/// The same for the program that measures latencies.
pub fn build_io() {
    static BUILT: std::sync::Once = std::sync::Once::new();
    BUILT.call_once(|| build(&["-p", "eke-iod"]));
}

/// The same for the program that serves a compressed page cache, as a path.
pub fn build_cache() -> PathBuf {
    static BUILT: std::sync::Once = std::sync::Once::new();
    BUILT.call_once(|| build(&["-p", "eke-cache-serve", "--bin", "eke-cache"]));
    PathBuf::from(env!("CARGO_BIN_EXE_eke")).with_file_name("eke-cache")
}

/// The path of a program beside `eke`.
fn build(what: &[&str]) {
    build_beside(env!("CARGO_BIN_EXE_eke").as_ref(), env!("CARGO").as_ref(), what);
}
