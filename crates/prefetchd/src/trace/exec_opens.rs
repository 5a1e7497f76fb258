//! Which processes are about to execute a program, by fanotify's FAN_OPEN_EXEC (since Linux 5.0; needs CAP_SYS_ADMIN, no network and no BTF).
//!
//! The kernel reports the opened file before the process runs it, so this is a hint: whoever gets it looks at `/proc` until the exec shows there.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::Duration;

use nix::sys::fanotify::{EventFFlags, Fanotify, InitFlags, MarkFlags, MaskFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::method::TraceError;
use super::scan::{Processes, Seen};

/// What is attempted, for errors.
pub(super) const TRIED: &str = "watch opened programs (fanotify)";
/// An exec that does not show for so long has failed, or was one of the same program.
const PATIENCE: Duration = Duration::from_secs(1);
/// The interval of looks at a few processes that are about to execute; of many, looks are rarer, so that a user who opens programs without end takes
/// little of the CPU.
const SOON: Duration = Duration::from_millis(3);
const FEW: usize = 8;
/// The most such processes; what others execute is left to the polls.
const MOST: usize = 64;
/// The most reads of events in a row, so that an exec storm does not hold the caller.
const READS: usize = 64;

/// A group that watches file systems, and the processes that opened a program there.
#[derive(Debug)]
pub struct ExecOpens {
    group: Fanotify,
    hints: Hints,
}

impl ExecOpens {
    /// Watches the file systems of these mounts.
    ///
    /// # Errors
    /// The kernel's answer; no file system can be watched.
    pub fn start(places: &[PathBuf]) -> Result<Self, TraceError> {
        let refused = |e: nix::Error| TraceError::new(TRIED, std::io::Error::from(e));
        let flags = InitFlags::FAN_CLASS_NOTIF | InitFlags::FAN_CLOEXEC | InitFlags::FAN_NONBLOCK;
        // The kernel opens the program for the event: it must not wait for a user's lease on it (fcntl(2)).
        let opened = EventFFlags::O_RDONLY | EventFFlags::O_CLOEXEC | EventFFlags::O_NONBLOCK;
        let group = Fanotify::init(flags, opened).map_err(refused)?;
        let opens = Self { group, hints: Hints::default() };
        let answers: Vec<_> = places.iter().map(|place| opens.mark(place)).collect();
        match answers.iter().find_map(|answer| answer.err()) {
            Some(e) if answers.iter().all(Result::is_err) => Err(refused(e)),
            _ if answers.is_empty() => Err(TraceError::new(TRIED, "no file system is on a disk")),
            _ => Ok(opens),
        }
    }

    /// Also watches these; what is watched already stays so. One that cannot be watched is left to the polls.
    pub fn add(&self, places: &[PathBuf]) {
        places.iter().for_each(|place| _ = self.mark(place));
    }

    /// The whole file system, which a service with mounts of its own shares with everybody.
    fn mark(&self, place: &PathBuf) -> nix::Result<()> {
        let flags = MarkFlags::FAN_MARK_ADD | MarkFlags::FAN_MARK_FILESYSTEM;
        self.group.mark(flags, MaskFlags::FAN_OPEN_EXEC, rustix::fs::CWD, Some(place))
    }

    /// Waits for an opened program, for at most `at_most`, and less while a process is about to execute one.
    pub fn wait(&self, at_most: Duration) {
        let at_most = at_most.min(self.hints.pace());
        let mut fds = [PollFd::new(&self.group, PollFlags::IN)];
        // an interrupted wait simply ends
        _ = poll(&mut fds, Timespec::try_from(at_most).ok().as_ref());
    }

    /// The processes that have opened a program and executed it, and are not yet `known` with it. `look` reads `/proc`: a process, and whether it has
    /// executed since it was forked.
    pub fn executed(
        &mut self,
        now: Duration,
        known: &Processes,
        look: impl Fn(u32) -> Option<(Seen, bool)>,
    ) -> Vec<(u32, Seen)> {
        for _ in 0..READS {
            let Ok(events) = self.group.read_events() else { break };
            events.iter().for_each(|event| self.hints.add(event.pid(), now));
        }
        self.hints.take_executed(now, known, look)
    }
}

impl AsFd for ExecOpens {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.group.as_fd()
    }
}

/// The processes that opened a program, and when.
#[derive(Debug, Default)]
struct Hints {
    opened: BTreeMap<u32, Duration>,
}

impl Hints {
    /// 0 is a process of another namespace.
    fn add(&mut self, pid: i32, now: Duration) {
        let has_room = self.opened.len() < MOST;
        let pid = u32::try_from(pid).ok().filter(|pid| *pid > 0);
        self.opened.extend(pid.filter(|_| has_room).map(|pid| (pid, now)));
    }

    /// When to look next.
    fn pace(&self) -> Duration {
        let processes = self.opened.len();
        if processes == 0 { Duration::MAX } else { SOON * (1 + processes / FEW) as u32 }
    }

    fn take_executed(
        &mut self,
        now: Duration,
        known: &Processes,
        look: impl Fn(u32) -> Option<(Seen, bool)>,
    ) -> Vec<(u32, Seen)> {
        let mut executed = Vec::new();
        self.opened.retain(|pid, since| match look(*pid) {
            None => false,
            Some((seen, true)) if known.get(pid) != Some(&seen) => {
                executed.push((*pid, seen));
                false
            }
            Some(_) => now.saturating_sub(*since) < PATIENCE,
        });
        executed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENED: Duration = Duration::from_secs(10);
    const LATER: Duration = Duration::from_millis(10_004);

    fn seen(exe: &str) -> Seen {
        (Some(exe.into()), 7)
    }

    fn hinted() -> Hints {
        let mut hints = Hints::default();
        hints.add(42, OPENED);
        hints
    }

    #[test]
    fn a_forked_process_counts_once_it_has_executed() {
        let mut hints = hinted();
        let mut take = |exe: &str, has_executed| {
            hints.take_executed(LATER, &Processes::new(), |_| Some((seen(exe), has_executed)))
        };
        assert_eq!(take("/bin/sh", false), [], "only forked");
        assert_eq!(take("/bin/ls", true), [(42, seen("/bin/ls"))]);
        assert_eq!(take("/bin/ls", true), [], "reported once");
    }

    #[test]
    fn a_process_that_executes_again_counts_when_it_shows_another_program() {
        let mut hints = hinted();
        let known = Processes::from([(42, seen("/usr/bin/env"))]);
        let mut take = |exe: &str| hints.take_executed(LATER, &known, |_| Some((seen(exe), true)));
        assert_eq!(take("/usr/bin/env"), []);
        assert_eq!(take("/usr/bin/okular"), [(42, seen("/usr/bin/okular"))]);
    }

    #[test]
    fn a_process_within_execve_is_looked_at_again() {
        let mut hints = hinted();
        assert_eq!(hints.take_executed(LATER, &Processes::new(), |_| Some(((None, 0), false))), []);
        let look = |_| Some((seen("/usr/bin/okular"), true));
        assert_eq!(hints.take_executed(LATER, &Processes::new(), look), [(42, seen("/usr/bin/okular"))]);
    }

    #[test]
    fn a_user_who_opens_programs_without_end_takes_little_of_the_cpu() {
        let mut hints = Hints::default();
        assert_eq!(hints.pace(), Duration::MAX);
        hints.add(1, OPENED);
        assert_eq!(hints.pace(), SOON);
        (1..1000).for_each(|pid| hints.add(pid, OPENED));
        assert_eq!(hints.opened.len(), MOST);
        assert_eq!(hints.pace(), SOON * 9);
    }

    #[test]
    fn what_is_gone_or_does_not_execute_is_forgotten() {
        let mut hints = hinted();
        hints.add(0, OPENED);
        hints.add(-1, OPENED);
        hints.add(43, OPENED);
        assert_eq!(hints.opened.len(), 2);
        let look = |pid| (pid == 42).then(|| (seen("/bin/sh"), false));
        assert_eq!(hints.take_executed(LATER, &Processes::new(), look), []);
        assert_eq!(hints.opened.keys().collect::<Vec<_>>(), [&42]);
        assert_eq!(hints.take_executed(OPENED + PATIENCE, &Processes::new(), look), []);
        assert!(hints.opened.is_empty());
    }
}
