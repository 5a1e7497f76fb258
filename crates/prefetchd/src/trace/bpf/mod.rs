//! Traces with BPF: the programs of `bpf/launch.bpf.c`.
//!
//! # Layout
//! - [`load`]: loads and attaches the programs; [`buffer`]: reads the ring buffers
//! - [`decode`]: converts records to trace events
//! - [`disk_reads`]: the count of others' reads, while a launch is read for
//!
//! The programs for exec, exit and fork stay attached as long as `Bpf` lives. Those for pages are attached with the first recorded launch and detached with
//! the last.

mod buffer;
mod decode;
mod disk_reads;
mod load;

use std::collections::BTreeSet;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use eke_linux::Root;
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object};

use self::buffer::Buffer;
use self::decode::EventDecoder;
use self::disk_reads::DiskReads;
use super::mapped;
use super::memory_files::MemoryFiles;
use super::method::{OthersReads, Trace, TraceError};
use super::process::{self, Descendants};
use super::record::{UNDECIDED, decode};
use eke_prefetch_model::learn::{LaunchId, TraceEvent};

/// Always attached.
const PROCESSES: [&str; 3] = ["on_exec", "on_exit", "on_fork"];
/// Attached while a launch is recorded.
const PAGES: [&str; 6] = ["on_add", "on_fault", "on_map", "on_read", "on_call", "on_return"];
/// Attached while a launch is read for.
const READS: [&str; 1] = ["on_disk_read"];

/// Attached BPF programs.
#[derive(Debug)]
pub struct Bpf {
    root: Root,
    decoder: EventDecoder,
    /// The recorded launches.
    launches: BTreeSet<LaunchId>,
    /// Pages that processes had mapped when their launches began, to be reported.
    caught_up: Vec<TraceEvent>,
    /// Lost events, as counted in the kernel, that were reported.
    lost: u64,
    sees_uses: bool,
    descendants: Descendants,
    /// Before the object, so that it is dropped first.
    page_links: Vec<Link>,
    read_links: Vec<Link>,
    #[expect(dead_code, reason = "held: its programs stay attached")]
    process_links: Vec<Link>,
    buffer: Buffer,
    processes: MapHandle,
    counts: MapHandle,
    recent: MapHandle,
    disk_reads: Arc<DiskReads>,
    object: Object,
}

impl Bpf {
    /// Loads the programs and attaches those for processes; also returns what they cannot trace on this kernel.
    ///
    /// # Errors
    /// No BTF, no permission, or the verifier's answer with the program's name.
    pub fn start(files: &MemoryFiles) -> Result<(Self, Vec<String>), TraceError> {
        let root = files.root();
        let load::Loaded { object, sees_uses, limits } = load::load(root)?;
        let map = |name: &str| {
            let found = object.maps().find(|map| map.name() == name);
            let found =
                found.ok_or_else(|| TraceError::new("find a BPF map", format!("no {name} in the object")))?;
            MapHandle::try_from(&found).map_err(|e| TraceError::new(format!("take the BPF map {name}"), e))
        };
        let bpf = Self {
            root: root.clone(),
            decoder: EventDecoder::new(files),
            launches: BTreeSet::new(),
            caught_up: Vec::new(),
            lost: 0,
            sees_uses,
            descendants: Descendants::default(),
            page_links: Vec::new(),
            read_links: Vec::new(),
            process_links: load::attach(&object, &PROCESSES)?,
            buffer: Buffer::of(&[map("process_events")?, map("page_events")?])?,
            processes: map("processes")?,
            counts: map("counts")?,
            recent: map("recent")?,
            disk_reads: Arc::new(DiskReads::new(map("not_others")?, map("others_reads")?)?),
            object,
        };
        Ok((bpf, limits))
    }

    /// Counts others' reads while that is wanted. Without the count, a launch is read for as if there were none.
    fn count_reads(&mut self) {
        let is_wanted = self.disk_reads.is_wanted();
        if is_wanted && self.read_links.is_empty() {
            self.read_links = load::attach(&self.object, &READS).unwrap_or_default();
        } else if !is_wanted {
            self.read_links.clear();
        }
    }

    fn mark(&self, launch: LaunchId, pid: u32) -> Result<(), TraceError> {
        self.processes
            .update(&pid.to_ne_bytes(), &launch.0.to_ne_bytes(), MapFlags::ANY)
            .map_err(|e| TraceError::new(format!("follow process {pid}"), e))
    }

    /// The launch that a process is marked with.
    fn marked(&self, key: &[u8]) -> Option<u32> {
        let value = self.processes.lookup(key, MapFlags::ANY).ok().flatten()?;
        Some(u32::from_ne_bytes(value.try_into().ok()?))
    }

    /// The children that a process has started since its exec and that run its program. Earlier ones are marked with a launch, and stay there.
    fn new_children(&mut self, pid: u32) -> Vec<u32> {
        let found = self.descendants.of(&self.root, pid);
        let exe = process::exe(&self.root, pid);
        let is_new = |child: &u32| {
            self.marked(&child.to_ne_bytes()).is_none_or(|mark| mark & UNDECIDED != 0)
                && process::exe(&self.root, *child) == exe
        };
        found.into_iter().filter(is_new).collect()
    }

    /// The children of a process since its latest exec, and theirs, that have executed nothing. They may have lost their parent.
    fn forked_at_once(&self, pid: u32) -> Vec<u32> {
        let origin = |key: &[u8]| self.recent.lookup(key, MapFlags::ANY).ok().flatten();
        let Some(own) = origin(&pid.to_ne_bytes()) else { return Vec::new() };
        let is_its = |key: &Vec<u8>| origin(key).as_ref() == Some(&own);
        let pids = self.recent.keys().filter(is_its);
        let pids = pids.filter_map(|key| Some(u32::from_ne_bytes(key.try_into().ok()?)));
        pids.filter(|child| *child != pid).collect()
    }

    fn unmark(&self, launch: LaunchId) {
        let is_of = |key: &Vec<u8>| self.marked(key).is_some_and(|mark| mark & !UNDECIDED == launch.0);
        let keys: Vec<Vec<u8>> = self.processes.keys().filter(is_of).collect();
        for key in keys {
            _ = self.processes.delete(&key);
        }
    }

    /// Events lost since the last call: full ring buffers, and processes that were not followed.
    fn newly_lost(&mut self) -> u64 {
        let counts =
            self.counts.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok().flatten().unwrap_or_default();
        let count = |at: usize| {
            counts.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
        };
        let lost = count(0) + count(8);
        let newly = lost.saturating_sub(self.lost);
        self.lost = lost;
        newly
    }
}

impl Trace for Bpf {
    fn wait(&mut self, at_most: Duration) {
        self.count_reads();
        if self.caught_up.is_empty() {
            self.buffer.wait(at_most);
        }
    }

    fn read(&mut self, each: &mut dyn FnMut(TraceEvent)) {
        self.descendants.begin_poll();
        self.decoder.refresh();
        self.caught_up.drain(..).for_each(&mut *each);
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let now_ns = (now.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64);
        let records = self.buffer.take(now_ns);
        for record in records.iter().filter_map(decode) {
            self.decoder.report(record, each);
        }
        let lost = self.newly_lost();
        if lost > 0 {
            each(TraceEvent::Lost(lost));
        }
    }

    /// Marks the process, then attaches, then reads what it has mapped: events in between are reported twice instead of never.
    fn learn(&mut self, launch: LaunchId, pid: u32) -> Result<Vec<u32>, TraceError> {
        self.mark(launch, pid)?;
        if self.page_links.is_empty() {
            self.page_links = load::attach(&self.object, &PAGES).inspect_err(|_| self.unmark(launch))?;
        }
        self.launches.insert(launch);
        let children: BTreeSet<u32> =
            self.new_children(pid).into_iter().chain(self.forked_at_once(pid)).collect();
        let children: Vec<u32> =
            children.into_iter().filter(|child| self.mark(launch, *child).is_ok()).collect();
        for process in [pid].iter().chain(&children) {
            let caught_up = &mut self.caught_up;
            mapped::report(&self.decoder.files, &self.decoder.mounts, launch, *process, &mut |seen| {
                caught_up.push(seen)
            });
        }
        Ok(children)
    }

    fn assign(&mut self, pid: u32, launch: Option<LaunchId>) {
        for process in self.new_children(pid).into_iter().chain([pid]) {
            // A process that has ended needs no mark, and one that cannot be marked is counted as lost.
            _ = match launch {
                Some(launch) => self.mark(launch, process),
                None => {
                    self.processes.delete(&process.to_ne_bytes()).map_err(|e| TraceError::new("unmark", e))
                }
            };
        }
    }

    fn has_lost_children(&mut self) -> bool {
        self.descendants.take_cut()
    }

    fn sees_uses(&self) -> bool {
        self.sees_uses
    }

    fn others_reads(&self) -> Option<Arc<dyn OthersReads>> {
        Some(Arc::<DiskReads>::clone(&self.disk_reads))
    }

    fn forget(&mut self, launch: LaunchId) {
        self.launches.remove(&launch);
        self.unmark(launch);
        if self.launches.is_empty() {
            self.page_links.clear();
        }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.buffer.fd())
    }
}
