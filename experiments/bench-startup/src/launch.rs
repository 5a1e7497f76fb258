//! One launch, in a process of its own: it enters the tree, starts the program on request, and reports when its window is mapped.
//!
//! It ends with its standard input, after the program and its children.

use std::collections::BTreeSet;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use eke_bench_desktop::desktop::User;
use eke_bench_desktop::desktop::bare::{Children, command, sockets};
use eke_bench_desktop::desktop::own_process;
use eke_linux::parse::process_stat;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};
use serde::{Deserialize, Serialize};
use x11rb::connection::Connection;
use x11rb::protocol::Event as Shown;
use x11rb::protocol::xproto::{ChangeWindowAttributesAux, ConnectionExt as _, EventMask};
use x11rb::rust_connection::RustConnection;

use super::maps::{self, Map};
use super::programs::{HOME, Until};

/// The interval between samples of the maps. Sampling costs the program time.
const SAMPLE: Duration = Duration::from_millis(20);
/// The interval of checks whether the other end still listens.
const TICK: Duration = Duration::from_millis(500);
/// The most characters shown of a program's messages.
const LAST_WORDS: usize = 600;

/// What is to be launched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The tree with the program.
    pub tree: PathBuf,
    /// The programs' home directory on this machine.
    pub home: PathBuf,
    /// The screen, `:1`; its key is in [`HOME`].
    pub display: String,
    /// The executable's path in the tree.
    pub executable: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// When the launch is over.
    pub until: Until,
    /// Its longest time, in seconds.
    pub patience_s: u64,
    /// Sample its maps during the launch.
    pub maps: bool,
}

/// Events, one JSON object per line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// Ready: a line of input starts the program.
    Ready {},
    /// The launch is over.
    Started(Started),
    /// The launch failed.
    Failed {
        /// The reason, as a sentence.
        why: String,
    },
}

/// A launch.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Started {
    /// From before fork and exec until its window was mapped, or until it ended.
    pub seconds: f64,
    /// Page faults that waited for a disk, of the program and its children (`majflt`, proc_pid_stat(5)).
    pub major_faults: u64,
    /// CPU seconds of the program and of children that it waited for, if it ended by itself; else 0.
    #[serde(default)]
    pub cpu_s: f64,
    /// The number of maps with files, if they were sampled.
    pub maps: usize,
    /// Their bytes.
    pub map_bytes: u64,
}

/// Runs a launch. Events go to `out`. A line of `input` starts the program; the end of `input`, or another line, ends everything.
pub fn run(spec: &Spec, mut input: impl BufRead + AsFd, out: &mut dyn Write) {
    let mut emit = |event: &Event| {
        let line = serde_json::to_string(event).unwrap_or_default();
        writeln!(out, "{line}").and_then(|()| out.flush()).is_ok()
    };
    let mut session = match Session::enter(spec) {
        Ok(session) => session,
        Err(why) => {
            emit(&Event::Failed { why });
            return;
        }
    };
    let mut line = String::new();
    if !emit(&Event::Ready {}) || !matches!(input.read_line(&mut line), Ok(n) if n > 0) {
        return;
    }
    let launched = session.launch(spec, &input);
    let goes_on = emit(&launched.map_or_else(|why| Event::Failed { why }, Event::Started));
    if goes_on {
        line.clear();
        let _ = input.read_line(&mut line);
    }
    session.end();
}

struct Session {
    children: Children,
    display: Option<RustConnection>,
    messages: std::fs::File,
}

impl Session {
    /// Connects to the screen from outside of the tree; its sockets are inside, too.
    fn enter(spec: &Spec) -> Result<Self, String> {
        let messages = tempfile::tempfile().map_err(|e| format!("no temporary file: {e}"))?;
        let display = (spec.until == Until::Window).then(|| watch(&spec.display)).transpose()?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|e| format!("cannot become the parent of orphans: {e}"))?;
        let mut binds = vec![(spec.home.clone(), "home")];
        if spec.until == Until::Window {
            binds.push((sockets().to_owned(), ".X11-unix"));
        }
        own_process::enter_root_with(&spec.tree, &binds).map_err(|e| e.to_string())?;
        Ok(Self { children: Children::default(), display, messages })
    }

    fn launch(&mut self, spec: &Spec, input: &impl AsFd) -> Result<Started, String> {
        let mut command = command(&spec.executable, Path::new(HOME));
        command
            .args(&spec.arguments)
            .env("DISPLAY", &spec.display)
            .env("XAUTHORITY", format!("{HOME}/.Xauthority"));
        command.env("TMPDIR", "/tmp").env("PYTHONDONTWRITEBYTECODE", "1");
        std::os::unix::process::CommandExt::uid(&mut command, User::NOBODY.uid);
        std::os::unix::process::CommandExt::gid(&mut command, User::NOBODY.gid);
        command.stderr(self.messages.try_clone().map_err(|e| e.to_string())?);
        let begun = Instant::now();
        self.children.start("program", &mut command, Signal::KILL).map_err(|e| format!("{e:?}"))?;
        let mut seen = BTreeSet::new();
        let seconds = self.wait(spec, begun, input, &mut seen)?;
        if spec.maps {
            sample_maps(&mut seen);
        }
        let (maps, map_bytes) = maps::size(&seen);
        let major_faults = family().iter().map(|p| p.major_faults).sum();
        if spec.until == Until::Exit {
            self.check_status()?;
        }
        Ok(Started { seconds, major_faults, cpu_s: ended_cpu_s(), maps, map_bytes })
    }

    /// Seconds until the launch is over.
    fn wait(
        &mut self,
        spec: &Spec,
        begun: Instant,
        input: &impl AsFd,
        seen: &mut BTreeSet<Map>,
    ) -> Result<f64, String> {
        let patience = Duration::from_secs(spec.patience_s);
        loop {
            if spec.until == Until::Begun || self.is_mapped()? {
                return Ok(begun.elapsed().as_secs_f64());
            }
            let (ended, left) = self.poll(if spec.maps { SAMPLE } else { TICK }, input);
            let elapsed = begun.elapsed();
            match (ended, spec.until) {
                (true, Until::Exit) => return Ok(elapsed.as_secs_f64()),
                (true, _) if self.is_mapped()? => return Ok(elapsed.as_secs_f64()),
                (true, _) => return Err(format!("it ended without a window{}", self.last_words())),
                (false, _) => {}
            }
            if left {
                return Err("the other end is gone".to_owned());
            }
            if elapsed > patience {
                return Err(format!("it took more than {} s{}", spec.patience_s, self.last_words()));
            }
            if spec.maps {
                sample_maps(seen);
            }
        }
    }

    /// Waits. Returns whether the program ended, and whether the other end is gone.
    fn poll(&self, time: Duration, input: &impl AsFd) -> (bool, bool) {
        let mut fds = vec![PollFd::new(input, PollFlags::empty())];
        fds.extend(self.children.ends().map(|end| PollFd::from_borrowed_fd(end, PollFlags::IN)));
        let children = fds.len();
        fds.extend(
            self.display.as_ref().map(|d| PollFd::from_borrowed_fd(d.stream().as_fd(), PollFlags::IN)),
        );
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(time.subsec_nanos()) };
        if poll(&mut fds, Some(&timeout)).is_err() {
            return (false, false);
        }
        let ended = fds[1..children].iter().any(|fd| !fd.revents().is_empty());
        (ended, fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR))
    }

    /// Is a top-level window mapped that window managers manage?
    fn is_mapped(&self) -> Result<bool, String> {
        let Some(display) = &self.display else { return Ok(false) };
        let root = display.setup().roots[0].root;
        while let Some(event) = display.poll_for_event().map_err(|e| format!("the X server is gone: {e}"))? {
            if matches!(event, Shown::MapNotify(e) if e.event == root && !e.override_redirect) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn check_status(&mut self) -> Result<(), String> {
        match self.children.first_status() {
            Some(status) if !status.success() => Err(format!("it failed ({status}){}", self.last_words())),
            _ => Ok(()),
        }
    }

    /// `; its messages: ...`
    fn last_words(&mut self) -> String {
        use std::io::{Read, Seek};
        let mut text = String::new();
        let _ = self.messages.rewind().and_then(|()| self.messages.read_to_string(&mut text));
        let text = text.trim();
        let from = text.char_indices().rev().nth(LAST_WORDS).map_or(0, |(at, _)| at);
        if text.is_empty() { String::new() } else { format!("; its messages: {}", &text[from..]) }
    }

    /// Ends the program, then orphans that this process inherited.
    fn end(self) {
        drop(self.children);
        while let Ok(Some(_)) = {
            family().iter().filter_map(|p| Pid::from_raw(p.pid)).for_each(|pid| {
                let _ = kill_process(pid, Signal::KILL);
            });
            wait(WaitOptions::empty())
        } {}
    }
}

/// The CPU time of children that were waited for, and of theirs (getrusage(2)).
#[expect(unsafe_code, reason = "getrusage(2) has no safe wrapper in the crates that are here")]
fn ended_cpu_s() -> f64 {
    // SAFETY: all-zero bytes are a valid `rusage`, which is integers only.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a value that lives through the call.
    let answer = unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    if answer == 0 { seconds(usage.ru_utime) + seconds(usage.ru_stime) } else { 0.0 }
}

/// A connection that gets events of new windows.
fn watch(display: &str) -> Result<RustConnection, String> {
    let failed = |e: &dyn std::fmt::Display| format!("no connection to the X server {display}: {e}");
    let (connection, screen) = RustConnection::connect(Some(display)).map_err(|e| failed(&e))?;
    let root = connection.setup().roots[screen].root;
    let attributes = ChangeWindowAttributesAux::new().event_mask(EventMask::SUBSTRUCTURE_NOTIFY);
    let asked = connection.change_window_attributes(root, &attributes).map_err(|e| failed(&e))?;
    asked.check().map_err(|e| failed(&e))?;
    Ok(connection)
}

fn sample_maps(seen: &mut BTreeSet<Map>) {
    for process in family() {
        let text = std::fs::read_to_string(format!("/proc/{}/maps", process.pid)).unwrap_or_default();
        seen.extend(maps::parse(&text));
    }
}

/// A descendant of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    major_faults: u64,
}

/// All descendants of this process, also zombies.
fn family() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    let all = pids.filter_map(|pid| parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?));
    below(&all.collect::<Vec<_>>(), rustix::process::getpid().as_raw_nonzero().get())
}

fn parse(stat: &str) -> Option<Process> {
    let stat = process_stat::parse(stat)?;
    Some(Process {
        pid: i32::try_from(stat.pid).ok()?,
        parent: i32::try_from(stat.parent).ok()?,
        major_faults: stat.major_faults.saturating_add(stat.children_major_faults),
    })
}

fn below(all: &[Process], ancestor: i32) -> Vec<Process> {
    let children = all.iter().filter(|p| p.parent == ancestor && p.pid != ancestor);
    children.flat_map(|child| std::iter::once(*child).chain(below(all, child.pid))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_children_and_theirs() {
        let stat = |pid: i32, parent: i32| {
            format!("{pid} (a) b) S {parent} 1 1 0 -1 4 10 20 3 4 30 12 0 0 20 0 1 0 1 1 1")
        };
        let all: Vec<Process> =
            [(2, 1), (3, 2), (4, 1), (5, 9)].iter().filter_map(|(p, q)| parse(&stat(*p, *q))).collect();
        assert_eq!(all[0], Process { pid: 2, parent: 1, major_faults: 7 });
        assert_eq!(below(&all, 1).iter().map(|p| p.pid).collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!(parse("5 (a"), None);
    }

    #[test]
    fn events_are_lines_of_json() {
        let event =
            Event::Started(Started { seconds: 0.5, major_faults: 3, cpu_s: 0.25, maps: 2, map_bytes: 10 });
        let text = serde_json::to_string(&event).unwrap();
        assert_eq!(
            text,
            r#"{"started":{"seconds":0.5,"major_faults":3,"cpu_s":0.25,"maps":2,"map_bytes":10}}"#
        );
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
        assert_eq!(serde_json::to_string(&Event::Ready {}).unwrap(), r#"{"ready":{}}"#);
    }
}
