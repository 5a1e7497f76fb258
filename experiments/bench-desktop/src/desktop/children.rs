//! Starts the session's programs, notices when one dies, and ends them all.

use std::io;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, set_parent_process_death_signal,
};

use crate::session::End;

/// A program that ignores its last signal for so long is killed.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// Programs that depend on a dead one die within this time.
const SETTLE: Duration = Duration::from_millis(100);

/// All programs of a session. Drop ends those that still run.
#[derive(Debug, Default)]
pub struct Children(Vec<ChildProcess>);

#[derive(Debug)]
struct ChildProcess {
    what: String,
    child: Child,
    /// Readable when the process ends (pidfd_open(2), Linux 5.3).
    end: Option<OwnedFd>,
    last: Signal,
    status: Option<ExitStatus>,
    socket: Option<PathBuf>,
}

impl Children {
    /// Starts a program, called `what` in messages. It gets the signal `last` at the end, and when this process dies.
    /// `command` sets its streams.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(&mut self, what: &str, command: &mut Command, last: Signal) -> Result<&mut Child, End> {
        die_with_parent(command.process_group(0), last);
        let child = command.spawn().map_err(|e| End::Failed {
            why: format!("the {what} ({}) cannot be started: {e}", command.get_program().to_string_lossy()),
        })?;
        let end = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok();
        let what = what.to_owned();
        self.0.push(ChildProcess { what, child, end, last, status: None, socket: None });
        let index = self.0.len() - 1;
        Ok(&mut self.0[index].child)
    }

    /// Names the socket of the program started last. A killed program leaves its socket; Drop removes it. (With
    /// `-displayfd` an X server makes no lock file.)
    pub fn listens(&mut self, socket: PathBuf) {
        if let Some(last) = self.0.last_mut() {
            last.socket = Some(socket);
        }
    }

    /// The process id of the program started first.
    pub fn first(&self) -> Option<u32> {
        self.0.first().map(|c| c.child.id())
    }

    /// The exit status of the program started first, once it has ended.
    pub fn first_status(&mut self) -> Option<ExitStatus> {
        self.any_dead();
        self.0.first().and_then(|c| c.status)
    }

    /// Descriptors that become readable when a program ends.
    pub fn ends(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.iter().filter_map(|c| c.end.as_ref().map(AsFd::as_fd))
    }

    /// The program that died. Of several, the one that was killed; otherwise the one started first, since the others
    /// depend on it.
    pub fn dead(&mut self) -> Option<End> {
        if !self.any_dead() {
            return None;
        }
        std::thread::sleep(SETTLE);
        self.any_dead();
        let dead = || self.0.iter().filter_map(|c| c.status.map(|s| (c, s.signal())));
        let (process, signal) = dead().find(|(_, signal)| signal.is_some()).or(dead().next())?;
        Some(End::Killed { what: process.what.clone(), signal })
    }

    fn any_dead(&mut self) -> bool {
        for process in &mut self.0 {
            process.status = process.status.or(process.child.try_wait().ok().flatten());
        }
        self.0.iter().any(|c| c.status.is_some())
    }
}

/// A command that inherits none of the driver's environment.
pub fn command(program: impl Into<PathBuf>, home: &std::path::Path) -> Command {
    let mut command = Command::new(program.into());
    command.env_clear().current_dir("/").env("PATH", super::programs::PATH).env("HOME", home);
    command.env("LANG", "C.UTF-8").env("XDG_RUNTIME_DIR", home);
    // GTK: no accessibility bus, no mounts of a desktop, no settings over D-Bus
    command.env("NO_AT_BRIDGE", "1").env("GIO_USE_VFS", "local").env("GSETTINGS_BACKEND", "memory");
    command.env("DBUS_SESSION_BUS_ADDRESS", "disabled:");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Sends the program this signal when the thread that starts it dies.
#[expect(unsafe_code, reason = "only the child itself can ask for a signal at its parent's death")]
pub fn die_with_parent(command: &mut Command, signal: Signal) {
    // SAFETY: the closure calls only prctl(2), which is async-signal-safe; it neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(move || Ok(set_parent_process_death_signal(Some(signal))?));
    }
}

impl ChildProcess {
    fn end(&mut self) {
        if self.status.is_none() {
            let pid = Pid::from_child(&self.child);
            let _ = kill_process_group(pid, self.last);
            if self.last != Signal::KILL && !self.ends_soon() {
                let _ = kill_process_group(pid, Signal::KILL);
            }
            let _ = self.child.wait();
        }
        self.clean();
    }

    fn ends_soon(&mut self) -> bool {
        let until = Instant::now() + ENDS_WITHIN;
        while Instant::now() < until {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    /// Removes the socket, unless another server listens there by now.
    fn clean(&self) {
        let Some(socket) = &self.socket else { return };
        let refused = UnixStream::connect(socket).err().map(|e| e.kind());
        if refused == Some(io::ErrorKind::ConnectionRefused) {
            let _ = std::fs::remove_file(socket);
        }
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        // Viewers end before the screen that they are on.
        for process in self.0.iter_mut().rev() {
            process.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use eke_testkit::wait::wait_for;

    use super::*;

    fn shell(text: &str) -> Command {
        let mut command = command("/bin/sh", std::path::Path::new("/"));
        command.args(["-c", text]);
        command
    }

    fn wait(children: &mut Children) -> End {
        wait_for("an end", || children.dead())
    }

    #[test]
    fn of_programs_that_die_together_the_killed_one_is_reported() {
        let mut children = Children::default();
        children.start("screen", &mut shell("exit 1"), Signal::TERM).unwrap();
        children.start("viewer", &mut shell("kill -9 $$"), Signal::KILL).unwrap();
        children.start("idler", &mut shell("sleep 60"), Signal::KILL).unwrap();
        assert_eq!(wait(&mut children), End::Killed { what: "viewer".into(), signal: Some(9) });
        assert_eq!(children.ends().count(), 3);
    }

    #[test]
    fn all_are_gone_at_the_end_also_those_that_ignore_signals() {
        let mut children = Children::default();
        let dir = tempfile::tempdir().unwrap();
        let is_deaf = dir.path().join("is_deaf");
        let text = format!("trap '' TERM; : > '{}'; sleep 60 & wait; sleep 60", is_deaf.display());
        let pid = children.start("deaf", &mut shell(&text), Signal::TERM).unwrap().id();
        wait_for("the trap", || is_deaf.exists());
        assert_eq!(children.dead(), None);
        drop(children);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn a_socket_is_removed_unless_somebody_listens() {
        let dir = tempfile::tempdir().unwrap();
        let (stale, living) = (dir.path().join("stale"), dir.path().join("living"));
        drop(UnixListener::bind(&stale).unwrap());
        let _listener = UnixListener::bind(&living).unwrap();
        let mut children = Children::default();
        for socket in [&stale, &living] {
            children.start("server", &mut shell("sleep 60"), Signal::KILL).unwrap();
            children.listens(socket.clone());
        }
        drop(children);
        assert!(!stale.exists() && living.exists());
    }

    #[test]
    fn a_missing_program_is_an_error() {
        let mut children = Children::default();
        let end =
            children.start("viewer", &mut command("/nowhere/v", "/".as_ref()), Signal::KILL).unwrap_err();
        assert!(
            matches!(end, End::Failed { why } if why.starts_with("the viewer (/nowhere/v) cannot be started: No"))
        );
    }
}
