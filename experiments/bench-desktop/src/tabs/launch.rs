//! The browser as a process: its command line, its two pipes, and that nothing of it stays.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use eke_linux::Root;
use rustix::io::fcntl_dupfd_cloexec;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, set_parent_process_death_signal, wait};

use super::{Spec, memory};

/// What a browser is started with. Nothing of it makes Chromium leaner than it is for its users: only what would disturb or
/// need the network is off, and each site has a process.
const ALWAYS: [&str; 21] = [
    "--headless=new",
    "--remote-debugging-pipe",
    // Otherwise there is an empty tab beside those that are counted.
    "--no-startup-window",
    "--site-per-process",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-proxy-server",
    "--no-pings",
    "--mute-audio",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--metrics-recording-only",
    "--password-store=basic",
    "--hide-scrollbars",
];

/// `PR_SET_MEMORY_MERGE` (linux/prctl.h, Linux 6.4).
const PR_SET_MEMORY_MERGE: libc::c_int = 67;

/// How long the processes may take to end after they were killed.
const END: Duration = Duration::from_secs(10);

/// The arguments for a browser that keeps its files in `directory`. Chromium refuses to sandbox itself as root.
pub fn arguments(spec: &Spec, directory: &Path, as_root: bool) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ALWAYS.iter().map(OsString::from).collect();
    let mut profile = OsString::from("--user-data-dir=");
    profile.push(directory);
    arguments.push(profile);
    arguments.push(format!("--window-size={},{}", spec.window.0, spec.window.1).into());
    if as_root {
        arguments.push("--no-sandbox".into());
    }
    arguments
}

/// A browser that was started.
#[derive(Debug)]
pub struct Launched {
    /// The process.
    pub child: Child,
    /// Requests go here.
    pub to: File,
    /// Answers come from here.
    pub from: File,
}

/// Starts it. It gets SIGKILL when this thread ends; its own helpers end when it is gone.
///
/// # Errors
/// The kernel's answer.
pub fn start(spec: &Spec, directory: &Path) -> io::Result<Launched> {
    let (its_input, to) = pipe_with(PipeFlags::CLOEXEC)?;
    let (from, its_output) = pipe_with(PipeFlags::CLOEXEC)?;
    let mut command = Command::new(&spec.program);
    command.args(arguments(spec, directory, rustix::process::geteuid().is_root()));
    command
        .env("HOME", directory)
        .env("TMPDIR", directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let placed = Placed { input: high(its_input)?, output: high(its_output)?, merge: spec.merge_same_pages };
    // The numbers 3 and 4 must not be the pipe by which the child says that exec failed.
    let _taken = take_low_numbers()?;
    prepare(&mut command, placed);
    Ok(Launched { child: command.spawn()?, to: to.into(), from: from.into() })
}

/// What the child does between fork and exec.
struct Placed {
    input: OwnedFd,
    output: OwnedFd,
    merge: bool,
}

/// A copy with a number above those that the browser wants.
fn high(fd: OwnedFd) -> io::Result<OwnedFd> {
    Ok(fcntl_dupfd_cloexec(&fd, 10)?)
}

fn take_low_numbers() -> io::Result<Vec<File>> {
    let mut taken = Vec::new();
    loop {
        let file = File::open("/dev/null")?;
        let done = file.as_raw_fd() > 4;
        taken.push(file);
        if done {
            return Ok(taken);
        }
    }
}

#[expect(unsafe_code, reason = "the browser's pipes must have the numbers 3 and 4 when it begins")]
fn prepare(command: &mut Command, placed: Placed) {
    // SAFETY: the closure calls only dup2(2) on open descriptors and prctl(2), both async-signal-safe; it neither
    // allocates nor takes a lock.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            let numbers: [(RawFd, RawFd); 2] =
                [(placed.input.as_raw_fd(), 3), (placed.output.as_raw_fd(), 4)];
            for (from, to) in numbers {
                if libc::dup2(from, to) < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            if placed.merge && libc::prctl(PR_SET_MEMORY_MERGE, 1, 0, 0, 0) < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
}

/// Kills all that is below this process and waits until it is gone. Needs [`adopt`]: otherwise what lost its parent is
/// not below.
pub fn end_all(root: &Root, child: &mut Child) {
    let until = Instant::now() + END;
    let _ = child.kill();
    let _ = child.wait();
    loop {
        let left = memory::below(root, std::process::id());
        if left.is_empty() || Instant::now() > until {
            return;
        }
        for pid in left.into_iter().filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
            let _ = kill_process(pid, Signal::KILL);
        }
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Makes this process the parent of all below it that lose theirs (PR_SET_CHILD_SUBREAPER, Linux 3.4).
///
/// # Errors
/// The kernel's answer.
pub fn adopt() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sandbox_is_off_for_root_alone() {
        let spec = Spec::new("/usr/bin/chromium".into(), 1);
        let words = |as_root| -> Vec<String> {
            let all = arguments(&spec, Path::new("/tmp/x"), as_root);
            all.iter().map(|w| w.to_string_lossy().into_owned()).collect()
        };
        assert!(
            words(true).contains(&"--no-sandbox".into()) && !words(false).contains(&"--no-sandbox".into())
        );
        assert!(words(false).contains(&"--user-data-dir=/tmp/x".into()));
        assert!(words(false).contains(&"--window-size=1024,768".into()));
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error_and_not_a_start() {
        let spec = Spec::new("/nonexistent/browser".into(), 1);
        assert_eq!(start(&spec, Path::new("/tmp")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a program of the test's own")]
    fn a_program_finds_its_pipes_as_3_and_4() {
        use std::io::{Read, Write};
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("echo");
        std::fs::write(&program, "#!/bin/sh\nread word <&3; echo \"$word back\" >&4\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let mut launched = start(&Spec::new(program, 1), dir.path()).unwrap();
        launched.to.write_all(b"hello\n").unwrap();
        let mut text = String::new();
        launched.from.read_to_string(&mut text).unwrap();
        launched.child.wait().unwrap();
        assert_eq!(text, "hello back\n");
    }
}
