//! Tracing without BPF: processes from the kernel's events, opened programs or polls of `/proc`, pages from the processes' mappings.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use eke_linux::Root;

use super::connector::Connector;
use super::exec_opens::{self, ExecOpens};
use super::mapped;
use super::memory_files::MemoryFiles;
use super::method::{Trace, TraceError};
use super::mounts::Mounts;
use super::proc_event::ProcEvent;
use super::process::{self, Descendants};
use super::scan::{self, Processes};
use super::script_path;
use eke_prefetch_model::learn::{Exec, LaunchId, TraceEvent};
use eke_prefetch_model::program::Program;

/// The interval between polls of all processes.
const SCAN_PACE: Duration = Duration::from_secs(2);
/// The interval between polls of a launch's mappings.
const MAPPED_PACE: Duration = Duration::from_millis(500);
/// A child belongs to the launch that may begin with its parent's exec if it is forked this soon after it.
const FORK_WINDOW: Duration = Duration::from_secs(1);
/// The most processes that are remembered for that.
const MOST_RECENT: usize = 1024;
/// The most processes per launch that are polled.
const PROCESSES: usize = 64;

/// The source of process events.
#[derive(Debug)]
enum ProcessSource {
    Connector(Connector),
    /// Polls. `opens` shows execs at once, and the polls what ended.
    Scan {
        last: Processes,
        at: Duration,
        opens: Option<ExecOpens>,
    },
}

/// A recorded launch.
#[derive(Debug, Default)]
struct Followed {
    pids: BTreeSet<u32>,
    /// Bytes that each process had read when it was first seen, and at the last poll.
    read: HashMap<u32, (u64, u64)>,
    polled: Option<Duration>,
}

impl Followed {
    /// Bytes that its processes have read.
    fn read_bytes(&self) -> u64 {
        self.read.values().map(|(before, now)| now.saturating_sub(*before)).sum()
    }
}

/// The tracer without BPF.
#[derive(Debug)]
pub struct Plain {
    root: Root,
    files: MemoryFiles,
    mounts: Mounts,
    source: ProcessSource,
    launches: BTreeMap<LaunchId, Followed>,
    /// Processes of a launch that have executed a program, and their children since, with that launch and the process that executed. They are not
    /// polled until it is decided where they belong.
    undecided: BTreeMap<u32, (LaunchId, u32)>,
    /// Processes that executed a program just now, and their children that did not, with the process that executed and the time. A program that forks at
    /// once and exits has no parent in `/proc` when its recording begins.
    recent: BTreeMap<u32, (u32, Duration)>,
    descendants: Descendants,
}

impl Plain {
    /// Uses the kernel's process events.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn by_events(files: &MemoryFiles) -> Result<Self, TraceError> {
        if !files.root().is_host() {
            return Err(TraceError::new(
                "listen to the kernel's process events",
                "this root is not the running machine's",
            ));
        }
        Ok(Self::new(files, ProcessSource::Connector(Connector::start()?)))
    }

    /// Watches programs that are opened, and polls `/proc`.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn by_opens(files: &MemoryFiles) -> Result<Self, TraceError> {
        let root = files.root();
        if !root.is_host() {
            return Err(TraceError::new(exec_opens::TRIED, "this root is not the running machine's"));
        }
        let opens = ExecOpens::start(&Mounts::read(root).places())?;
        Ok(Self::polling(files, Some(opens)))
    }

    /// Polls `/proc`.
    pub fn by_polling(files: &MemoryFiles) -> Self {
        Self::polling(files, None)
    }

    fn polling(files: &MemoryFiles, opens: Option<ExecOpens>) -> Self {
        Self::new(files, ProcessSource::Scan { last: scan::processes(files.root()), at: clock(), opens })
    }

    fn new(files: &MemoryFiles, source: ProcessSource) -> Self {
        let (root, mounts) = (files.root().clone(), Mounts::read(files.root()));
        Self {
            root,
            files: files.clone(),
            mounts,
            source,
            launches: BTreeMap::new(),
            undecided: BTreeMap::new(),
            recent: BTreeMap::new(),
            descendants: Descendants::default(),
        }
    }

    /// The process events since the last call, and whether some were lost.
    fn events(&mut self) -> (Vec<ProcEvent>, bool) {
        match &mut self.source {
            ProcessSource::Connector(connector) => {
                let read = connector.read();
                (read.events, read.has_lost)
            }
            ProcessSource::Scan { last, at, opens } => {
                let (root, now) = (&self.root, clock());
                let mut events =
                    opens.as_mut().map_or_else(Vec::new, |opens| executed(opens, last, root, now));
                if now.saturating_sub(*at) >= SCAN_PACE {
                    let processes = scan::processes(root);
                    events.extend(scan::between(last, &processes, now));
                    (*last, *at) = (processes, now);
                }
                (events, false)
            }
        }
    }

    fn report(&mut self, event: ProcEvent, each: &mut dyn FnMut(TraceEvent)) {
        match event {
            ProcEvent::Fork { parent, child } => {
                let Some(launch) = self.launch_of(parent) else { return self.note_child(parent, child) };
                match self.undecided.get(&parent) {
                    Some(of) => _ = self.undecided.insert(child, *of),
                    None => self.follow(launch, child),
                }
                each(TraceEvent::Fork { pid: child, parent, launch });
            }
            ProcEvent::Exec { pid, at } => {
                self.report_read(pid, each);
                self.note(pid, (pid, at));
                each(TraceEvent::Exec(self.exec(pid, at)));
            }
            ProcEvent::Exit { pid, at } => {
                let launch = self.launch_of(pid);
                self.unfollow(pid);
                self.undecided.remove(&pid);
                each(TraceEvent::Exit { pid, at, launch });
            }
        }
    }

    fn note_child(&mut self, parent: u32, child: u32) {
        let known = self.recent.get(&parent).copied();
        let is_new = |(_, at): &(u32, Duration)| clock().saturating_sub(*at) <= FORK_WINDOW;
        known.filter(is_new).into_iter().for_each(|origin| self.note(child, origin));
    }

    fn note(&mut self, pid: u32, origin: (u32, Duration)) {
        if self.recent.len() >= MOST_RECENT {
            let now = clock();
            self.recent.retain(|_, (_, at)| now.saturating_sub(*at) <= FORK_WINDOW);
        }
        if self.recent.len() < MOST_RECENT {
            self.recent.insert(pid, origin);
        }
    }

    /// The children of a process since its latest exec, and theirs, that have executed nothing. They may have lost their parent.
    fn forked_at_once(&self, pid: u32) -> Vec<u32> {
        let Some(own) = self.recent.get(&pid) else { return Vec::new() };
        let its = self.recent.iter().filter(|(child, origin)| **child != pid && *origin == own);
        its.map(|(child, _)| *child).collect()
    }

    fn launch_of(&self, pid: u32) -> Option<LaunchId> {
        let followed = self.launches.iter().find(|(_, followed)| followed.pids.contains(&pid));
        followed.map(|(id, _)| *id).or_else(|| self.undecided.get(&pid).map(|(launch, _)| *launch))
    }

    fn follow(&mut self, launch: LaunchId, pid: u32) {
        self.unfollow(pid);
        let before = process::read_bytes(&self.root, pid).unwrap_or(0);
        if let Some(followed) = self.launches.get_mut(&launch).filter(|f| f.pids.len() < PROCESSES) {
            followed.pids.insert(pid);
            followed.read.insert(pid, (before, before));
        }
    }

    fn unfollow(&mut self, pid: u32) {
        self.launches.values_mut().for_each(|followed| _ = followed.pids.remove(&pid));
    }

    fn exec(&mut self, pid: u32, at: Duration) -> Exec {
        let (parent, uid) = process::parent_and_user(&self.root, pid).unwrap_or((0, 0));
        let launch = self.launch_of(pid).or_else(|| self.launch_of(parent));
        if let Some(launch) = launch {
            self.unfollow(pid);
            self.undecided.insert(pid, (launch, pid));
        }
        let group = process::group(&self.root, pid).unwrap_or(0);
        let session = process::session(&self.root, pid);
        Exec { pid, parent, uid, group, session, ino: None, at, launch, program: self.program(pid) }
    }

    /// The program of a process. Paths are those of the process: they hold on the host if the process has the host's mounts, or if the host has the
    /// same file there. As a service this process has its own mounts (PrivateTmp, ProtectSystem), which no other program shares.
    fn program(&self, pid: u32) -> Option<Program> {
        let exe = process::exe(&self.root, pid)?;
        let is_here =
            process::has_our_mounts(&self.root, pid) || mapped::is_here(&self.files, &self.mounts, pid, &exe);
        is_here.then_some(())?;
        Some(script_path::program(&self.files, &self.mounts, pid, exe))
    }

    /// What a process has read until it executes another program, and leaves its launch: its counters go on, and nobody polls them then.
    fn report_read(&mut self, pid: u32, each: &mut dyn FnMut(TraceEvent)) {
        let of = self.launches.iter_mut().find(|(_, followed)| followed.pids.contains(&pid));
        let Some((launch, followed)) = of else { return };
        if let (Some(now), Some(read)) = (process::read_bytes(&self.root, pid), followed.read.get_mut(&pid)) {
            read.1 = now;
        }
        each(TraceEvent::Read { launch: *launch, bytes: followed.read_bytes() });
    }

    fn report_mapped(&mut self, launch: LaunchId, each: &mut dyn FnMut(TraceEvent)) {
        let Some(followed) = self.launches.get_mut(&launch) else { return };
        let now = clock();
        if followed.polled.is_some_and(|at| now.saturating_sub(at) < MAPPED_PACE) {
            return;
        }
        followed.polled = Some(now);
        for pid in &followed.pids {
            mapped::report(&self.files, &self.mounts, launch, *pid, each);
            if let (Some(now), Some(read)) =
                (process::read_bytes(&self.root, *pid), followed.read.get_mut(pid))
            {
                read.1 = now;
            }
        }
        each(TraceEvent::Read { launch, bytes: followed.read_bytes() });
    }
}

impl Trace for Plain {
    fn wait(&mut self, at_most: Duration) {
        match &self.source {
            ProcessSource::Connector(connector) => connector.wait(at_most),
            ProcessSource::Scan { opens: Some(opens), .. } => opens.wait(at_most.min(SCAN_PACE)),
            ProcessSource::Scan { opens: None, .. } => std::thread::sleep(at_most.min(SCAN_PACE)),
        }
    }

    fn read(&mut self, each: &mut dyn FnMut(TraceEvent)) {
        self.descendants.begin_poll();
        if self.mounts.refresh() {
            if let ProcessSource::Scan { opens: Some(opens), .. } = &self.source {
                opens.add(&self.mounts.places());
            }
        }
        let (events, has_lost) = self.events();
        for event in events {
            self.report(event, each);
        }
        for launch in self.launches.keys().copied().collect::<Vec<_>>() {
            self.report_mapped(launch, each);
        }
        if has_lost {
            each(TraceEvent::Lost(1));
        }
    }

    fn learn(&mut self, launch: LaunchId, pid: u32) -> Result<Vec<u32>, TraceError> {
        self.launches.entry(launch).or_default();
        self.assign(pid, Some(launch));
        let exe = process::exe(&self.root, pid);
        let mut children: BTreeSet<u32> = self.descendants.of(&self.root, pid).into_iter().collect();
        children.retain(|child| process::exe(&self.root, *child) == exe);
        children.extend(self.forked_at_once(pid));
        children.retain(|child| self.launch_of(*child).is_none());
        children.iter().for_each(|child| self.follow(launch, *child));
        Ok(children.into_iter().collect())
    }

    fn assign(&mut self, pid: u32, launch: Option<LaunchId>) {
        let of = self.undecided.iter().filter(|(_, (_, executed))| *executed == pid).map(|(pid, _)| *pid);
        for process in of.chain([pid]).collect::<Vec<_>>() {
            self.undecided.remove(&process);
            match launch {
                Some(launch) => self.follow(launch, process),
                None => self.unfollow(process),
            }
        }
    }

    fn has_lost_children(&mut self) -> bool {
        self.descendants.take_cut()
    }

    fn forget(&mut self, launch: LaunchId) {
        self.launches.remove(&launch);
        self.undecided.retain(|_, (of, _)| *of != launch);
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.source {
            ProcessSource::Connector(connector) => Some(connector.as_fd()),
            ProcessSource::Scan { opens, .. } => opens.as_ref().map(AsFd::as_fd),
        }
    }
}

/// The programs that were opened and are executed now; their processes are `known` from now on.
fn executed(opens: &mut ExecOpens, known: &mut Processes, root: &Root, at: Duration) -> Vec<ProcEvent> {
    let executed = opens.executed(at, known, |pid| scan::look(root, pid));
    let events = executed.iter().map(|(pid, _)| ProcEvent::Exec { pid: *pid, at }).collect();
    known.extend(executed);
    events
}

fn clock() -> Duration {
    Duration::from_millis(eke_linux::read::monotonic_ms())
}
