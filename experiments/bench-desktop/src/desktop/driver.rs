//! The driver of a session: its programs, the reader of its events, and the wait for the first of several events.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd};

use super::User;
use super::children::{self, Children};
use super::stop::{Stop, failed};
use super::windows::Windows;
use crate::session::{End, Event};

/// The longest single wait: the driver notices a signal between reading its flag and waiting at most so late. Also the time
/// between two readings of the viewers' activity.
pub(super) const TICK: Duration = Duration::from_millis(50);
/// The shortest wait: also a wait whose time is over notices who died.
const SHORTEST: Duration = Duration::from_millis(1);

/// The output for events, one JSON object a line.
pub(super) struct Listener<'a> {
    /// Lines are written here.
    pub to: &'a mut dyn Write,
    /// The same output, polled to notice that nobody reads any more.
    pub fd: BorrowedFd<'a>,
}

/// A session's programs, listener and user. Drop ends the programs, then removes their home directory.
pub(super) struct Driver<'a> {
    /// The programs.
    pub children: Children,
    listener: Listener<'a>,
    stop: &'a AtomicBool,
    parent: Option<rustix::process::Pid>,
    home: tempfile::TempDir,
    user: Option<User>,
}

impl<'a> Driver<'a> {
    /// A driver without programs; they will run as `user`.
    ///
    /// # Errors
    /// The programs' home directory cannot be made.
    pub fn new(listener: Listener<'a>, stop: &'a AtomicBool, user: Option<User>) -> Result<Self, Stop> {
        let home = super::home::make(&std::env::temp_dir());
        let no_home = |e| failed(format!("cannot make a home directory for the viewers: {e}"));
        let home = home.map_err(no_home)?;
        let parent = rustix::process::getppid();
        let driver = Self { children: Children::default(), listener, stop, parent, home, user };
        driver.give(driver.home()).map_err(no_home)?;
        Ok(driver)
    }

    /// A command that runs as the session's user.
    pub fn command(&self, program: impl Into<PathBuf>) -> Command {
        let mut command = children::command(program, self.home());
        if let Some(User { uid, gid }) = self.user {
            // Changing the user drops all other groups (std::os::unix::process::CommandExt::uid).
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Gives a file or directory of this process to the programs' user.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn give(&self, path: &Path) -> std::io::Result<()> {
        self.user.map_or(Ok(()), |User { uid, gid }| std::os::unix::fs::lchown(path, Some(uid), Some(gid)))
    }

    /// The programs' home directory, empty at the start.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Writes an event and flushes.
    ///
    /// # Errors
    /// Nobody reads the events.
    pub fn report(&mut self, event: &Event) -> Result<(), Stop> {
        let mut line = serde_json::to_vec(event).map_err(|e| failed(e.to_string()))?;
        line.push(b'\n');
        let written = self.listener.to.write_all(&line).and_then(|()| self.listener.to.flush());
        written.map_err(|e| failed(format!("nobody reads the events: {e}")))
    }

    /// Returns after at most a tick, at `until`, or when the display has an event.
    ///
    /// # Errors
    /// A program died, the session must end, or `until` has passed: then `what` was too slow.
    pub fn wait(
        &mut self,
        on: Option<&Windows>,
        until: Instant,
        what: impl Fn() -> String,
    ) -> Result<(), Stop> {
        let fd = on.map(Windows::ready).transpose()?;
        self.poll(fd, remaining(until, what)?).map(|_| ())
    }

    /// Like [`Self::wait`], but `until` ends only this wait.
    ///
    /// # Errors
    /// As [`Self::wait`], but never too slow.
    pub fn wait_briefly(&mut self, on: &Windows, until: Instant) -> Result<(), Stop> {
        let fd = on.ready()?;
        let time = until.saturating_duration_since(Instant::now()).clamp(SHORTEST, TICK);
        self.poll(Some(fd), time).map(|_| ())
    }

    /// Waits until `fd` is readable.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn wait_for(
        &mut self,
        fd: &impl AsFd,
        until: Instant,
        what: impl Fn() -> String,
    ) -> Result<(), Stop> {
        while !self.poll(Some(fd.as_fd()), remaining(until, &what)?)? {}
        Ok(())
    }

    fn poll(&mut self, fd: Option<BorrowedFd<'_>>, time: Duration) -> Result<bool, Stop> {
        let (readable, closed) = self.wait_at_most(fd, time);
        if let Some(end) = self.children.dead() {
            return Err(end.into());
        }
        if closed || self.parent != rustix::process::getppid() {
            return Err(failed("nobody reads the events"));
        }
        if self.stop.load(Ordering::Relaxed) {
            return Err(failed("interrupted"));
        }
        Ok(readable)
    }

    fn wait_at_most(&self, fd: Option<BorrowedFd<'_>>, time: Duration) -> (bool, bool) {
        let mut fds = vec![PollFd::from_borrowed_fd(self.listener.fd, PollFlags::empty())];
        fds.extend(fd.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        fds.extend(self.children.ends().map(|end| PollFd::from_borrowed_fd(end, PollFlags::IN)));
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(time.subsec_nanos()) };
        if poll(&mut fds, Some(&timeout)).is_err() {
            return (false, false);
        }
        let readable = fd.is_some() && !fds[1].revents().is_empty();
        (readable, fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP))
    }

    /// The cause of a stop. A refusal of the display is mostly due to a program's death, which shows a little later.
    pub fn cause(&mut self, stop: Stop) -> End {
        let why = match stop {
            Stop::Ended(end) => return end,
            display @ Stop::Display(_) => display.to_string(),
        };
        let until = Instant::now() + Duration::from_secs(1);
        loop {
            match self.children.dead() {
                Some(end) => return end,
                None if Instant::now() > until => return End::Failed { why },
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

/// The time of the next wait, at most a tick.
fn remaining(until: Instant, what: impl Fn() -> String) -> Result<Duration, Stop> {
    let remaining = until.saturating_duration_since(Instant::now());
    if remaining.is_zero() { Err(End::TooSlow { what: what() }.into()) } else { Ok(remaining.min(TICK)) }
}
