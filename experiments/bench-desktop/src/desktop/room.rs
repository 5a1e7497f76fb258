//! Where a session's parts meet: its programs, its listener, and the wait for whatever comes first.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd};
use x11rb::errors::{ConnectionError, ReplyError, ReplyOrIdError};

use super::User;
use super::children::{self, Children};
use super::windows::Windows;
use crate::session::{End, Event};

/// A signal that comes between looking at its flag and the wait is seen so late at most; also the time between two
/// looks at whether viewers work.
pub(super) const TICK: Duration = Duration::from_millis(50);
/// A wait that is over already is still a look at who died.
const SHORTEST: Duration = Duration::from_millis(1);

/// Why a session does not go on.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stop {
    /// It is over.
    #[error("it is over")]
    Ended(End),
    /// The X server does not answer, or refuses: it died, or a window of a viewer that died.
    #[error("the display refuses: {0}")]
    Display(String),
}

impl From<End> for Stop {
    fn from(end: End) -> Self {
        Self::Ended(end)
    }
}

impl From<ConnectionError> for Stop {
    fn from(error: ConnectionError) -> Self {
        Self::Display(error.to_string())
    }
}

impl From<ReplyError> for Stop {
    fn from(error: ReplyError) -> Self {
        Self::Display(error.to_string())
    }
}

impl From<ReplyOrIdError> for Stop {
    fn from(error: ReplyOrIdError) -> Self {
        Self::Display(error.to_string())
    }
}

/// A session that cannot be held.
pub(super) fn failed(why: impl Into<String>) -> Stop {
    Stop::Ended(End::Failed { why: why.into() })
}

/// Who is told of events, one JSON object a line.
pub(super) struct Listener<'a> {
    /// Where to.
    pub to: &'a mut dyn Write,
    /// The same, to see that nobody reads any more.
    pub fd: BorrowedFd<'a>,
}

/// See above. The programs end when it is dropped, before their home directory does.
pub(super) struct Room<'a> {
    /// The programs.
    pub children: Children,
    listener: Listener<'a>,
    stop: &'a AtomicBool,
    parent: Option<rustix::process::Pid>,
    home: tempfile::TempDir,
    user: Option<User>,
}

impl<'a> Room<'a> {
    /// An empty one, whose programs run as `user`.
    ///
    /// # Errors
    /// No home directory can be made for the programs.
    pub fn new(listener: Listener<'a>, stop: &'a AtomicBool, user: Option<User>) -> Result<Self, Stop> {
        let home = super::home::make(&std::env::temp_dir());
        let no_home = |e| failed(format!("cannot make a home directory for the viewers: {e}"));
        let home = home.map_err(no_home)?;
        let parent = rustix::process::getppid();
        let room = Self { children: Children::default(), listener, stop, parent, home, user };
        room.give(room.home()).map_err(no_home)?;
        Ok(room)
    }

    /// A program of the session, as its user.
    pub fn command(&self, program: impl Into<PathBuf>) -> Command {
        let mut command = children::command(program, self.home());
        if let Some(User { uid, gid }) = self.user {
            // Other groups are given up with the user (std::os::unix::process::CommandExt::uid).
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

    /// Tells an event, at once.
    ///
    /// # Errors
    /// Nobody listens.
    pub fn tell(&mut self, event: &Event) -> Result<(), Stop> {
        let mut line = serde_json::to_vec(event).map_err(|e| failed(e.to_string()))?;
        line.push(b'\n');
        let told = self.listener.to.write_all(&line).and_then(|()| self.listener.to.flush());
        told.map_err(|e| failed(format!("nobody listens: {e}")))
    }

    /// Returns after at most a tick, at `until`, or when the display has something to say.
    ///
    /// # Errors
    /// A program died, the session is to end, or it is later than `until`: then `what` was too slow.
    pub fn wait(
        &mut self,
        on: Option<&Windows>,
        until: Instant,
        what: impl Fn() -> String,
    ) -> Result<(), Stop> {
        let fd = on.map(Windows::ready).transpose()?;
        self.poll(fd, left(until, what)?).map(|_| ())
    }

    /// The same, but `until` is only the end of this wait.
    ///
    /// # Errors
    /// As [`Self::wait`], but never too slow.
    pub fn wait_briefly(&mut self, on: &Windows, until: Instant) -> Result<(), Stop> {
        let fd = on.ready()?;
        let time = until.saturating_duration_since(Instant::now()).clamp(SHORTEST, TICK);
        self.poll(Some(fd), time).map(|_| ())
    }

    /// The same until `fd` is readable.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn wait_for(
        &mut self,
        fd: &impl AsFd,
        until: Instant,
        what: impl Fn() -> String,
    ) -> Result<(), Stop> {
        while !self.poll(Some(fd.as_fd()), left(until, &what)?)? {}
        Ok(())
    }

    fn poll(&mut self, fd: Option<BorrowedFd<'_>>, time: Duration) -> Result<bool, Stop> {
        let (readable, closed) = self.wait_at_most(fd, time);
        if let Some(end) = self.children.dead() {
            return Err(end.into());
        }
        if closed || self.parent != rustix::process::getppid() {
            return Err(failed("nobody listens"));
        }
        if self.stop.load(Ordering::Relaxed) {
            return Err(failed("it was told to end"));
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

    /// What a refusal of the display is due to: mostly somebody's death, which is seen a little later.
    pub fn judge(&mut self, stop: Stop) -> End {
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

/// How long to wait at most now.
fn left(until: Instant, what: impl Fn() -> String) -> Result<Duration, Stop> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(End::TooSlow { what: what() }.into()) } else { Ok(left.min(TICK)) }
}
