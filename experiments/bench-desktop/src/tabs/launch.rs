//! The browser as a process: its command line, its two pipes, and its end with all its children.

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

/// The browser's options. None makes Chromium leaner than it is for its users: only features that would disturb the run or
/// need the network are off, and each site has a process.
const ALWAYS: [&str; 21] = [
    "--headless=new",
    "--remote-debugging-pipe",
    // Without it, the browser opens an empty tab beside those that are counted.
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

/// How long killed processes may take to end.
const END: Duration = Duration::from_secs(10);

/// The arguments for a browser with its profile in `directory`. Chromium refuses to sandbox itself as root.
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

/// A started browser.
#[derive(Debug)]
pub struct Launched {
    /// The process.
    pub child: Child,
    /// The pipe for requests.
    pub to: File,
    /// The pipe of answers.
    pub from: File,
}

/// Starts the browser. It gets SIGKILL when this thread ends; its children end with it.
///
/// # Errors
/// The program cannot be started.
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
    // Descriptors 3 and 4 must be free of the pipe on which the child reports a failed exec.
    let _taken = take_low_numbers()?;
    prepare(&mut command, placed);
    Ok(Launched { child: command.spawn()?, to: to.into(), from: from.into() })
}

/// The descriptors that become 3 and 4 of the child, and whether it merges equal pages.
struct Placed {
    input: OwnedFd,
    output: OwnedFd,
    merge: bool,
}

/// A copy of the descriptor with a number above those that the browser uses.
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

#[expect(unsafe_code, reason = "the browser's pipes must be descriptors 3 and 4 at its exec")]
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

/// Kills all descendants of this process and waits until they are gone. Needs [`adopt_orphans`]: otherwise orphans are not
/// descendants of this process.
pub fn end_all(root: &Root, child: &mut Child) {
    let until = Instant::now() + END;
    let _ = child.kill();
    let _ = child.wait();
    loop {
        let remaining = memory::descendants(root, std::process::id());
        if remaining.is_empty() || Instant::now() > until {
            return;
        }
        for pid in remaining.into_iter().filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
            let _ = kill_process(pid, Signal::KILL);
        }
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Makes this process the parent of orphans among its descendants (PR_SET_CHILD_SUBREAPER, Linux 3.4).
///
/// # Errors
/// The kernel refuses.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sandbox_is_off_for_root_only() {
        let spec = Spec::new("/usr/bin/chromium".into(), 1);
        let texts = |as_root| -> Vec<String> {
            let all = arguments(&spec, Path::new("/tmp/x"), as_root);
            all.iter().map(|w| w.to_string_lossy().into_owned()).collect()
        };
        assert!(
            texts(true).contains(&"--no-sandbox".into()) && !texts(false).contains(&"--no-sandbox".into())
        );
        assert!(texts(false).contains(&"--user-data-dir=/tmp/x".into()));
        assert!(texts(false).contains(&"--window-size=1024,768".into()));
    }

    #[test]
    fn a_missing_program_is_an_error() {
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
