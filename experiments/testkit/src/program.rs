//! Runs programs and captures their output.

#![allow(clippy::expect_used, clippy::panic, reason = "functions of tests, which fail by it")]

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::wait::{BOUND, wait_at_most, wait_for};

/// Longer than any program of a test takes, and less than the silence after which `scripts/limited` ends the test.
const LONGEST: Duration = Duration::from_secs(800);
/// For what a program left running, to end or to close the program's output.
const AFTERWARDS: Duration = Duration::from_secs(60);

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
///
/// # Panics
/// As [`output`].
#[track_caller]
pub fn ran(command: &mut Command) -> Ran {
    output(command).into()
}

/// As [`Command::output`] without input, which waits for ever for a program that does not end, and for one that left a process with its output open.
///
/// # Panics
/// If the command does not start, or after minutes, with what it printed.
#[track_caller]
pub fn output(command: &mut Command) -> Output {
    output_within(LONGEST, command)
}

/// The same with another bound.
///
/// # Panics
/// As above.
#[track_caller]
pub fn output_within(bound: Duration, command: &mut Command) -> Output {
    let line = format!("{command:?}");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    output_at_end(bound, command.spawn().expect("the command starts"), &line)
}

/// As [`Child::wait_with_output`], with the bounds of [`output`].
///
/// # Panics
/// After minutes, with what it printed.
#[track_caller]
pub fn output_of(child: Child) -> Output {
    let name = format!("process {}", child.id());
    output_at_end(LONGEST, child, &name)
}

#[track_caller]
fn output_at_end(bound: Duration, mut child: Child, name: &str) -> Output {
    drop(child.stdin.take());
    let stdout = child.stdout.take().map(pieces);
    let stderr = child.stderr.take().map(pieces);
    let mut child = Unfinished(child);
    let status =
        wait_at_most(bound, &format!("the end of {name}"), || child.0.try_wait().expect("it is a child"));
    Output { status, stdout: all_of(stdout, name), stderr: all_of(stderr, name) }
}

/// A process that should end. If it does not, drop kills it.
struct Unfinished(Child);

impl Drop for Unfinished {
    fn drop(&mut self) {
        kill(&mut self.0);
    }
}

/// What can be read, in pieces, until the end.
fn pieces(mut from: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (send, received) = channel();
    std::thread::spawn(move || {
        let mut bytes = vec![0; 64 << 10];
        loop {
            match from.read(&mut bytes) {
                Ok(0) => return,
                Ok(count) if send.send(bytes[..count].to_vec()).is_ok() => {}
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    });
    received
}

#[track_caller]
fn all_of(pieces: Option<Receiver<Vec<u8>>>, name: &str) -> Vec<u8> {
    let mut all = Vec::new();
    let Some(pieces) = pieces else { return all };
    loop {
        match pieces.recv_timeout(AFTERWARDS) {
            Ok(piece) => all.extend(piece),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return all,
            Err(_) => panic!(
                "{name} has ended, but what it started keeps its output open; it printed {}",
                String::from_utf8_lossy(&all)
            ),
        }
    }
}

/// What can be read until the end, of a process that has ended.
///
/// # Panics
/// After a minute without a byte and without an end: what it started keeps the output open.
#[track_caller]
pub fn text_of(from: impl Read + Send + 'static) -> String {
    String::from_utf8_lossy(&all_of(Some(pieces(from)), "a process")).into_owned()
}

/// The first line of a program's output. What it prints later is read and dropped, so that it need not wait for a reader.
///
/// # Panics
/// If none comes.
#[track_caller]
pub fn first_line(from: impl Read + Send + 'static) -> String {
    let (send, line) = channel();
    std::thread::spawn(move || {
        let (mut from, mut line) = (BufReader::new(from), String::new());
        let _ = from.read_line(&mut line);
        let _ = send.send(line);
        let _ = std::io::copy(&mut from, &mut std::io::sink());
    });
    line.recv_timeout(BOUND).unwrap_or_else(|e| panic!("no first line of a program's output: {e}"))
}

/// Waits for the end of a process that should end by itself.
///
/// # Panics
/// If it does not; then it is killed.
#[track_caller]
pub fn end_of(child: &mut Child) -> ExitStatus {
    let name = format!("the end of process {}", child.id());
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        wait_for(&name, || child.try_wait().expect("it is a child"))
    }));
    ended.unwrap_or_else(|why| {
        kill(child);
        std::panic::resume_unwind(why)
    })
}

/// Kills a process and waits for its end. One that waits for a file system that does not answer does not end: that is printed.
pub fn kill(child: &mut Child) {
    let _ = child.kill();
    let end = std::time::Instant::now() + AFTERWARDS;
    while matches!(child.try_wait(), Ok(None)) {
        if std::time::Instant::now() > end {
            let of = |file: &str| {
                std::fs::read_to_string(format!("/proc/{}/{file}", child.id())).unwrap_or_default()
            };
            eprintln!(
                "process {} ({}) was killed and does not end: {}",
                child.id(),
                of("comm").trim(),
                of("stack")
            );
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A process. Drop kills it and waits for it.
#[derive(Debug)]
pub struct KilledOnDrop(pub Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        kill(&mut self.0);
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
    browser.arg(format!("file://{}", page.display()));
    ran(&mut browser)
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
/// temporary directories (the prefix is `tempfile`'s, or that of the cache's tests).
pub fn mounts() -> Vec<String> {
    const OF_TESTS: [&str; 3] = [" fuse.eke-cache ", "/.tmp", "/eke-cachefs-"];
    let comes_and_goes =
        |l: &&str| l.starts_with("eke-slow-disk") || OF_TESTS.iter().any(|part| l.contains(part));
    read("/proc/self/mounts".as_ref()).lines().filter(|l| !comes_and_goes(l)).map(str::to_owned).collect()
}

/// The text of a file; paths in it, such as those where other tests mount, may have any bytes.
fn read(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_program_is_run_to_its_end_with_all_that_it_prints() {
        let ran: Ran = output(&mut sh("seq 100000; echo late >&2; exit 3")).into();
        assert_eq!(
            (ran.stdout.lines().count(), ran.stderr.as_str(), ran.status),
            (100_000, "late\n", Some(3))
        );
        let child = sh("cat; echo end").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        assert_eq!(output_of(child).stdout, b"end\n");
    }

    #[test]
    fn a_program_that_does_not_end_is_killed_and_named() {
        let mut command = sh("exec sleep 1000");
        let run = std::panic::AssertUnwindSafe(|| output_within(Duration::ZERO, &mut command));
        let why = *std::panic::catch_unwind(run).unwrap_err().downcast::<String>().unwrap();
        assert!(why.contains("in vain for the end of") && why.contains("sleep 1000"), "{why}");
    }

    #[test]
    fn a_program_need_not_wait_for_the_reader_of_its_first_line() {
        let mut child = sh("seq 100000").stdout(Stdio::piped()).spawn().unwrap();
        assert_eq!(first_line(child.stdout.take().unwrap()), "1\n");
        assert!(end_of(&mut child).success());
    }
}
