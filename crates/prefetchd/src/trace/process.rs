//! Reads `/proc` for one process. Nothing here waits for disks, or for a process within execve(2), of which there is nothing to read yet; [`args`] and
//! [`given`] may wait for the lock of its memory: [`super::memory_files`].

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use eke_linux::Root;
use eke_linux::parse::{process_io, process_stat, process_status};
use eke_linux::read::answers;
use eke_prefetch_model::learn::GivenPaths;

use super::record::NO_SESSION;

/// The most bytes of arguments, and of the environment.
const ARGS_BYTES: u64 = 16 << 10;
const ENVIRONMENT_BYTES: u64 = 64 << 10;
/// The unit of start times (USER_HZ of 100; proc_pid_stat(5)).
const TICK_MS: u64 = 10;
/// The most descendants and further threads that are examined between two polls: starts wait meanwhile, and a program may have thousands.
const EXAMINED: usize = 512;

/// Where one of its links leads.
fn link(root: &Root, pid: u32, name: &str) -> Option<PathBuf> {
    answers(root, pid).then(|| std::fs::read_link(root.path(format!("proc/{pid}/{name}"))).ok())?
}

/// One of its files.
pub fn text(root: &Root, pid: u32, name: &str) -> Option<String> {
    answers(root, pid).then(|| root.read(format!("proc/{pid}/{name}")).ok())?
}

/// Its working directory.
pub fn cwd(root: &Root, pid: u32) -> Option<PathBuf> {
    link(root, pid, "cwd")
}

/// Its executable; `None` also if deleted.
pub fn exe(root: &Root, pid: u32) -> Option<PathBuf> {
    let path = link(root, pid, "exe")?;
    (path.is_absolute() && !path.as_os_str().as_bytes().ends_with(b" (deleted)")).then_some(path)
}

/// The begin of its arguments, each followed by a zero byte. May wait for ever.
pub fn args(root: &Root, pid: u32) -> Vec<u8> {
    begin_of(root, pid, "cmdline", ARGS_BYTES)
}

fn begin_of(root: &Root, pid: u32, name: &str, most_bytes: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = File::open(root.path(format!("proc/{pid}/{name}")));
    _ = file.map(|file| file.take(most_bytes).read_to_end(&mut bytes));
    bytes
}

/// The home directory that it was told of. May wait for ever.
fn home(root: &Root, pid: u32) -> Option<PathBuf> {
    let environment = answers(root, pid).then(|| begin_of(root, pid, "environ", ENVIRONMENT_BYTES))?;
    let home = environment.split(|byte| *byte == 0).find_map(|variable| variable.strip_prefix(b"HOME="))?;
    Some(PathBuf::from(OsStr::from_bytes(home))).filter(|home| home.is_absolute())
}

/// The paths that it was given. May wait for ever.
pub fn given(root: &Root, pid: u32) -> GivenPaths {
    let (args, cwd) = (args(root, pid), cwd(root, pid));
    let input = link(root, pid, "fd/0");
    let given = GivenPaths::new(&split_args(&args, true), cwd.as_deref(), input);
    given.within(cwd.as_deref(), home(root, pid).as_deref())
}

/// Splits arguments; drops a last one that was cut off.
pub fn split_args(args: &[u8], is_whole: bool) -> Vec<&[u8]> {
    let mut split: Vec<&[u8]> = args.split(|b| *b == 0).collect();
    let last = split.pop();
    split.extend(last.filter(|last| is_whole && !last.is_empty()));
    split
}

/// Whether it has the mounts of the first process, which are the host's: this process may have its own. Where nobody may see the first one's, they are
/// compared with this process's. Of one that has ended it is not known.
pub fn has_hosts_mounts(root: &Root, pid: u32) -> bool {
    let own = || std::fs::read_link(root.path("proc/self/ns/mnt")).ok();
    let hosts = link(root, 1, "ns/mnt").or_else(own);
    link(root, pid, "ns/mnt").is_none_or(|theirs| hosts.is_none_or(|hosts| theirs == hosts))
}

/// The directory that it sees as its root; `None` if that is the host's.
pub fn top(root: &Root, pid: u32) -> Option<PathBuf> {
    link(root, pid, "root").filter(|top| top != Path::new("/"))
}

/// Whether it has the same mounts as this process.
pub fn has_our_mounts(root: &Root, pid: u32) -> bool {
    let ours = || std::fs::read_link(root.path("proc/self/ns/mnt")).ok();
    link(root, pid, "ns/mnt").is_some_and(|theirs| ours() == Some(theirs))
}

/// Its parent and its real user id.
pub fn parent_and_user(root: &Root, pid: u32) -> Option<(u32, u32)> {
    let status = process_status::parse(&root.read(format!("proc/{pid}/status")).ok()?);
    Some((status.parent?, status.real_user?))
}

/// Its process group.
pub fn group(root: &Root, pid: u32) -> Option<u32> {
    process_stat::parse(&text(root, pid, "stat")?).map(|stat| stat.group)
}

/// Its audit session; `None` without one, and on a kernel without audit (CONFIG_AUDIT).
pub fn session(root: &Root, pid: u32) -> Option<u32> {
    let session = root.read(format!("proc/{pid}/sessionid")).ok()?.trim().parse().ok();
    session.filter(|session| *session != NO_SESSION)
}

/// Whether it has a controlling terminal.
pub fn has_terminal(root: &Root, pid: u32) -> bool {
    let text = text(root, pid, "stat").unwrap_or_default();
    process_stat::parse(&text).is_some_and(|stat| stat.has_terminal)
}

/// Bytes that it and its threads have read from disks (`read_bytes` of `/proc/PID/io`; needs CONFIG_TASK_IO_ACCOUNTING).
pub fn read_bytes(root: &Root, pid: u32) -> Option<u64> {
    process_io::parse(&text(root, pid, "io")?).map(|io| io.read)
}

/// Whether it began at most `age` ago; `None` if that is unknown.
pub fn is_younger(root: &Root, pid: u32, age: Duration) -> Option<bool> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let now_ms = u64::try_from(now.tv_sec).ok()? * 1000 + u64::try_from(now.tv_nsec).ok()? / 1_000_000;
    let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    let earliest = now_ms.saturating_sub(age_ms) / TICK_MS;
    process_stat::parse(&text(root, pid, "stat")?).map(|stat| stat.start_ticks >= earliest)
}

/// A process of this executable and real user that began after `executed` (CLOCK_MONOTONIC): of a program that forks and exits, the child. Its parent does
/// not show it, because that is gone.
pub fn heir(root: &Root, exe: &Path, user: u32, executed: Duration) -> Option<u32> {
    // By the clock, not by the event's time: the child may have begun within the milliseconds between. Its own time is rounded down to a tick.
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let since = Duration::try_from(now).unwrap_or_default().saturating_sub(executed);
    let age = since + Duration::from_millis(TICK_MS);
    let is_young = |pid: u32| is_younger(root, pid, age) == Some(true);
    let is_of_user = |pid: u32| parent_and_user(root, pid).is_some_and(|(_, of)| of == user);
    let is_it =
        |pid: &u32| is_of_user(*pid) && self::exe(root, *pid).as_deref() == Some(exe) && is_young(*pid);
    eke_linux::read::pids(root).into_iter().find(is_it)
}

/// Finds the descendants of processes, of so many as there is time for.
#[derive(Debug)]
pub struct Descendants {
    /// How many more may be examined until the next poll.
    left: usize,
    is_cut: bool,
}

impl Default for Descendants {
    fn default() -> Self {
        Self { left: EXAMINED, is_cut: false }
    }
}

impl Descendants {
    /// A poll begins.
    pub fn begin_poll(&mut self) {
        self.left = EXAMINED;
    }

    /// Whether some were left out since the last call.
    pub fn take_cut(&mut self) -> bool {
        std::mem::take(&mut self.is_cut)
    }

    /// The children of a process and theirs; none without CONFIG_PROC_CHILDREN.
    pub fn of(&mut self, root: &Root, pid: u32) -> Vec<u32> {
        let mut found = Vec::new();
        let mut open = vec![pid];
        while let Some(pid) = open.pop() {
            for (nth, thread) in root.list(format!("proc/{pid}/task")).unwrap_or_default().iter().enumerate()
            {
                // The first thread is the process itself.
                if nth > 0 && !self.examines_another() {
                    return found;
                }
                let text = root.read(format!("proc/{pid}/task/{thread}/children")).unwrap_or_default();
                for child in text.split_ascii_whitespace().filter_map(|child| child.parse::<u32>().ok()) {
                    if !self.examines_another() {
                        return found;
                    }
                    open.push(child);
                    found.push(child);
                }
            }
        }
        found
    }

    fn examines_another(&mut self) -> bool {
        let is_left = self.left > 0;
        self.is_cut |= !is_left;
        self.left = self.left.saturating_sub(1);
        is_left
    }
}

#[cfg(test)]
mod tests {
    use eke_testkit::tree::put;
    use eke_testkit::wait::wait_for;

    use super::*;

    #[test]
    fn arguments_that_were_cut_off_are_left_out() {
        assert_eq!(split_args(b"sh\0-c\0", true), [&b"sh"[..], b"-c"]);
        assert_eq!(split_args(b"sh\0\0a b\0/usr/bi", false), [&b"sh"[..], b"", b"a b"]);
        assert_eq!(split_args(b"odd", true), [&b"odd"[..]]);
        assert_eq!(split_args(b"", true), Vec::<&[u8]>::new());
    }

    #[test]
    fn a_process_is_given_its_working_directory_below_its_home() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "proc/7/cmdline", "git\0status\0");
        put(dir.path(), "proc/7/environ", "LANG=C\0HOME=/home/u\0A=b\0");
        put(dir.path(), "proc/8/cmdline", "git\0status\0");
        for pid in [7, 8] {
            std::os::unix::fs::symlink("/home/u/work", dir.path().join(format!("proc/{pid}/cwd"))).unwrap();
        }
        let has = |pid| given(&Root::at(dir.path()), pid).has(Path::new("/home/u/work/src/main.rs"));
        assert!(has(7) && !has(8), "of one without a home it is not known what is its profile");
    }

    #[test]
    fn a_process_has_an_audit_session_and_a_terminal_or_none() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        for (pid, session, terminal) in [(7, "5\n", "34816"), (8, "4294967295", "0")] {
            put(dir.path(), &format!("proc/{pid}/sessionid"), session);
            let rest = "0 ".repeat(20);
            let stat = format!("{pid} (a) b) S 1 2 3 {terminal} 5 {rest}");
            put(dir.path(), &format!("proc/{pid}/stat"), &stat);
        }
        assert_eq!([7, 8, 9].map(|pid| session(&root, pid)), [Some(5), None, None]);
        assert_eq!([7, 8, 9].map(|pid| has_terminal(&root, pid)), [true, false, false]);
    }

    #[test]
    fn of_ten_thousand_descendants_some_are_examined_in_each_poll() {
        let dir = tempfile::tempdir().unwrap();
        let children = |of: u32, thread: u32, pids: std::ops::Range<u32>| {
            let text: Vec<String> = pids.map(|pid| pid.to_string()).collect();
            put(dir.path(), &format!("proc/{of}/task/{thread}/children"), &text.join(" "));
        };
        children(7, 7, 8..10);
        children(8, 8, 20..21);
        children(50, 50, 1000..11_000);
        (60..1000).for_each(|thread| children(60, thread, 0..0));
        let (root, mut descendants) = (Root::at(dir.path()), Descendants::default());
        assert_eq!(descendants.of(&root, 7), [8, 9, 20]);
        assert!(!descendants.take_cut());
        assert_eq!(descendants.of(&root, 50).len(), EXAMINED - 3);
        assert!(
            descendants.of(&root, 7).is_empty() && descendants.take_cut(),
            "nothing is left in this poll"
        );
        assert!(!descendants.take_cut());
        descendants.begin_poll();
        assert_eq!(descendants.of(&root, 7), [8, 9, 20]);
        descendants.of(&root, 60);
        assert!(descendants.take_cut(), "threads count, too");
    }

    #[test]
    fn the_heir_is_a_young_process_of_the_program_and_user() {
        let (root, own) = (Root::host(), std::env::current_exe().unwrap());
        let mut sleep = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let user = rustix::process::getuid().as_raw();
        let child = sleep.id();
        let minute = Duration::from_secs(60);
        // Within exec it answers nothing yet.
        wait_for("the exec of sleep", || exe(&root, child).is_some_and(|exe| exe != own));
        let mut of = (None, None, None);
        if let Some(exe) = exe(&root, child) {
            of.0 = heir(&root, &exe, user, minute);
            of.1 = heir(&root, &exe, user ^ 1, minute);
            of.2 = heir(&root, &own, user, minute);
        }
        sleep.kill().unwrap();
        sleep.wait().unwrap();
        assert!(of.0.is_some(), "this child, or another young `sleep`");
        assert_eq!(of.1, None, "another user's");
        assert_eq!(of.2, Some(std::process::id()));
        assert_eq!(heir(&root, Path::new("/nowhere/x"), user, minute), None);
    }

    #[test]
    fn this_process_is_as_it_knows_itself() {
        let (root, pid) = (Root::host(), std::process::id());
        assert_eq!(exe(&root, pid), std::env::current_exe().ok());
        assert_eq!(cwd(&root, pid), std::env::current_dir().ok());
        let own: Vec<Vec<u8>> = std::env::args_os().map(|arg| arg.as_bytes().to_vec()).collect();
        assert_eq!(split_args(&args(&root, pid), true), own);
        assert_eq!(
            parent_and_user(&root, pid).map(|found| found.1),
            Some(rustix::process::getuid().as_raw())
        );
    }
}
