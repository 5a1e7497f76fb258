//! Tracing without BPF: processes by the kernel's events or by looks at `/proc`, pages by what the processes have mapped.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use eke_linux::Root;

use super::connector::Connector;
use super::mapped;
use super::mounts::Mounts;
use super::proc_event::ProcEvent;
use super::process;
use super::scan::{self, Processes};
use super::way::{Refused, Trace};
use eke_prefetch_model::learn::{Exec, LaunchId, Seen, script};
use eke_prefetch_model::program::Program;

/// Between two looks at all processes.
const SCAN_PACE: Duration = Duration::from_secs(2);
/// Between two looks at what the processes of a launch have mapped.
const LOOK_PACE: Duration = Duration::from_millis(500);
/// Processes of a launch that are looked at.
const PROCESSES: usize = 64;

/// Where processes are heard of.
#[derive(Debug)]
enum Ears {
    Connector(Connector),
    Scan { last: Processes, at: Duration },
}

/// A launch that is learned.
#[derive(Debug, Default)]
struct Followed {
    pids: BTreeSet<u32>,
    /// Bytes that a process had read when it was first seen, and at the last look.
    read: HashMap<u32, (u64, u64)>,
    looked: Option<Duration>,
}

/// The way without BPF.
#[derive(Debug)]
pub struct Plain {
    root: Root,
    mounts: Mounts,
    ears: Ears,
    launches: BTreeMap<LaunchId, Followed>,
}

impl Plain {
    /// By the kernel's process events.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn by_events(root: &Root) -> Result<Self, Refused> {
        if !root.is_host() {
            return Err(Refused::new(
                "listen to the kernel's process events",
                "this root is not the running machine's",
            ));
        }
        Ok(Self::new(root, Ears::Connector(Connector::start()?)))
    }

    /// By looks at `/proc`.
    pub fn by_looks(root: &Root) -> Self {
        Self::new(root, Ears::Scan { last: scan::look(root), at: clock() })
    }

    fn new(root: &Root, ears: Ears) -> Self {
        Self { root: root.clone(), mounts: Mounts::read(root), ears, launches: BTreeMap::new() }
    }

    /// What processes did since the last time, and whether some of it was lost.
    fn hear(&mut self) -> (Vec<ProcEvent>, bool) {
        match &mut self.ears {
            Ears::Connector(connector) => {
                let heard = connector.read();
                (heard.events, heard.has_lost)
            }
            Ears::Scan { at, .. } if clock().saturating_sub(*at) < SCAN_PACE => (Vec::new(), false),
            Ears::Scan { last, at } => {
                let now = scan::look(&self.root);
                *at = clock();
                let events = scan::between(last, &now, *at);
                *last = now;
                (events, false)
            }
        }
    }

    fn tell(&mut self, event: ProcEvent, each: &mut dyn FnMut(Seen)) {
        match event {
            ProcEvent::Fork { parent, child } => {
                if let Some(launch) = self.launch_of(parent) {
                    self.follow(launch, child);
                    each(Seen::Fork { pid: child, launch });
                }
            }
            ProcEvent::Exec { pid, at } => each(Seen::Exec(self.exec(pid, at))),
            ProcEvent::Exit { pid, at } => {
                let launch = self.launch_of(pid);
                self.launches.values_mut().for_each(|followed| _ = followed.pids.remove(&pid));
                each(Seen::Exit { pid, at, launch });
            }
        }
    }

    fn launch_of(&self, pid: u32) -> Option<LaunchId> {
        self.launches.iter().find(|(_, followed)| followed.pids.contains(&pid)).map(|(id, _)| *id)
    }

    fn follow(&mut self, launch: LaunchId, pid: u32) {
        let before = process::read_bytes(&self.root, pid).unwrap_or(0);
        if let Some(followed) = self.launches.get_mut(&launch).filter(|f| f.pids.len() < PROCESSES) {
            followed.pids.insert(pid);
            followed.read.insert(pid, (before, before));
        }
    }

    fn exec(&mut self, pid: u32, at: Duration) -> Exec {
        let (parent, uid) = process::parent_and_user(&self.root, pid).unwrap_or((0, 0));
        let mut launch = self.launch_of(pid);
        if let (None, Some(of_parent)) = (launch, self.launch_of(parent)) {
            self.follow(of_parent, pid);
            launch = Some(of_parent);
        }
        Exec { pid, parent, uid, at, launch, program: self.program(pid) }
    }

    /// Paths are those of the process: they are the host's if its mounts are, or if the host has the same file there. As a service this
    /// process has mounts of its own (PrivateTmp, ProtectSystem), which no other program has.
    fn program(&self, pid: u32) -> Option<Program> {
        let exe = process::exe(&self.root, pid)?;
        let is_here =
            process::has_our_mounts(&self.root, pid) || mapped::is_here(&self.root, &self.mounts, pid, &exe);
        is_here.then_some(())?;
        let args = process::args(&self.root, pid);
        let cwd = process::cwd(&self.root, pid);
        Some(script::program(exe, &process::split_args(&args, true), cwd.as_deref()))
    }

    fn look(&mut self, launch: LaunchId, each: &mut dyn FnMut(Seen)) {
        let Some(followed) = self.launches.get_mut(&launch) else { return };
        let now = clock();
        if followed.looked.is_some_and(|at| now.saturating_sub(at) < LOOK_PACE) {
            return;
        }
        followed.looked = Some(now);
        for pid in &followed.pids {
            mapped::look(&self.root, &self.mounts, launch, *pid, each);
            if let (Some(now), Some(read)) =
                (process::read_bytes(&self.root, *pid), followed.read.get_mut(pid))
            {
                read.1 = now;
            }
        }
        let bytes = followed.read.values().map(|(before, now)| now.saturating_sub(*before)).sum();
        each(Seen::Read { launch, bytes });
    }
}

impl Trace for Plain {
    fn wait(&mut self, at_most: Duration) {
        match &self.ears {
            Ears::Connector(connector) => connector.wait(at_most),
            Ears::Scan { .. } => std::thread::sleep(at_most.min(SCAN_PACE)),
        }
    }

    fn read(&mut self, each: &mut dyn FnMut(Seen)) {
        self.mounts.refresh();
        let (events, has_lost) = self.hear();
        for event in events {
            self.tell(event, each);
        }
        for launch in self.launches.keys().copied().collect::<Vec<_>>() {
            self.look(launch, each);
        }
        if has_lost {
            each(Seen::Lost(1));
        }
    }

    fn learn(&mut self, launch: LaunchId, pid: u32) -> Result<(), Refused> {
        self.launches.entry(launch).or_default();
        self.follow(launch, pid);
        for child in process::descendants(&self.root, pid) {
            self.follow(launch, child);
        }
        Ok(())
    }

    fn forget(&mut self, launch: LaunchId) {
        self.launches.remove(&launch);
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.ears {
            Ears::Connector(connector) => Some(connector.as_fd()),
            Ears::Scan { .. } => None,
        }
    }
}

fn clock() -> Duration {
    Duration::from_millis(eke_linux::read::monotonic_ms())
}
