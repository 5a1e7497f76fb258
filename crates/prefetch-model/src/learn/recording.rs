//! One launch while it is being recorded.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use super::event::{Exec, Inode, PageUse, TraceEvent, TracedFile};
use super::rules::{Now, ProgramState, Settings};
use crate::file_set::{FileSet, Kind, Touched};
use crate::launch::{Launch, LaunchEnd};
use crate::pages::{Pages, Span};
use crate::program::Program;

/// The most processes tracked per launch. Others are not waited for, so such a launch may end by its quiet time or time limit.
const PROCESSES: usize = 8192;

/// The record of a launch so far.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) program: Program,
    pub(super) known: ProgramState,
    pub(super) uid: u32,
    began: Now,
    processes: BTreeSet<u32>,
    last_new: Duration,
    files: Vec<File>,
    by_inode: HashMap<Inode, Option<usize>>,
    pages: u64,
    has_touched: bool,
    read_bytes: u64,
    is_lost: bool,
}

#[derive(Debug)]
struct File {
    found: TracedFile,
    /// Pages that were used.
    touched: Pages,
    /// Pages that entered the page cache, used or only read ahead.
    added: Pages,
}

impl Recording {
    pub(super) fn new(exec: &Exec, program: Program, known: ProgramState, now: Now) -> Self {
        Self {
            program,
            known,
            uid: exec.uid,
            began: now,
            processes: BTreeSet::from([exec.pid]),
            last_new: now.mono,
            files: Vec::new(),
            by_inode: HashMap::new(),
            pages: 0,
            has_touched: false,
            read_bytes: 0,
            is_lost: false,
        }
    }

    /// Adds an event of this launch.
    pub(super) fn add(&mut self, event: &TraceEvent, now: Duration, settings: &Settings) {
        match event {
            TraceEvent::Fork { pid, .. } => self.fork(*pid),
            TraceEvent::File { inode, found, .. } => self.file(*inode, found.as_ref(), settings),
            TraceEvent::Pages { inode, span, how, .. } => self.touch(*inode, *span, *how, now, settings),
            TraceEvent::Read { bytes, .. } => self.read_bytes = self.read_bytes.max(*bytes),
            TraceEvent::Exec(_) | TraceEvent::Exit { .. } | TraceEvent::Lost(_) => {}
        }
    }

    fn fork(&mut self, pid: u32) {
        if self.processes.len() < PROCESSES {
            self.processes.insert(pid);
        }
    }

    pub(super) fn has(&self, pid: u32) -> bool {
        self.processes.contains(&pid)
    }

    pub(super) fn exit(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }

    pub(super) fn lost(&mut self) {
        self.is_lost = true;
    }

    fn file(&mut self, inode: Inode, found: Option<&TracedFile>, settings: &Settings) {
        if self.by_inode.contains_key(&inode) {
            return;
        }
        if self.by_inode.len() >= settings.files {
            self.is_lost = true;
            return;
        }
        self.by_inode.insert(inode, found.map(|_| self.files.len()));
        self.files.extend(found.map(|found| File {
            found: found.clone(),
            touched: Pages::default(),
            added: Pages::default(),
        }));
    }

    fn touch(&mut self, inode: Inode, span: Span, how: PageUse, now: Duration, settings: &Settings) {
        let Some(file) = self.by_inode.get(&inode).copied().flatten().and_then(|at| self.files.get_mut(at))
        else {
            return;
        };
        let pages = if how == PageUse::Added { &mut file.added } else { &mut file.touched };
        let fresh = Pages::from_iter([span]).without(pages).count();
        if fresh == 0 {
            return;
        }
        if (self.pages + fresh) * crate::PAGE_BYTES > settings.bytes {
            self.is_lost = true;
            return;
        }
        pages.insert(span);
        self.has_touched |= how != PageUse::Added;
        // pages that were only read ahead count too: this bounds the memory of the record
        self.pages += fresh;
        self.last_new = self.last_new.max(now);
    }

    /// Why recording should end now, if it should.
    pub(super) fn ended(&self, now: Duration, settings: &Settings) -> Option<LaunchEnd> {
        if self.processes.is_empty() {
            Some(LaunchEnd::Exited)
        } else if now.saturating_sub(self.began.mono) >= settings.limit {
            Some(LaunchEnd::Limit)
        } else if now.saturating_sub(self.last_new) >= settings.quiet {
            Some(LaunchEnd::Quiet)
        } else {
            None
        }
    }

    /// The complete record.
    pub(super) fn finish(self, ended: LaunchEnd) -> Launch {
        let has_touched = self.has_touched;
        // Then pages that were already in memory were not traced.
        let sees_no_use = !has_touched && self.files.iter().any(|file| !file.added.is_empty());
        let cold_pages: u64 = self.files.iter().map(|file| file.cold_pages(has_touched)).sum();
        Launch {
            program: self.program,
            uid: self.uid,
            began_ns: self.began.real_ns,
            took: self.last_new.saturating_sub(self.began.mono),
            ended: if self.is_lost || sees_no_use { LaunchEnd::Lost } else { ended },
            set: FileSet {
                files: self.files.into_iter().filter_map(|file| file.finish(has_touched)).collect(),
            },
            cold_bytes: self.read_bytes.max(cold_pages * crate::PAGE_BYTES),
        }
    }
}

impl File {
    /// The pages that were needed. For devices: all that entered memory, because the kernel reads single blocks there and later uses are not traced.
    /// For files: the same on kernels that do not trace uses (before Linux 6.12).
    fn needed(&self, has_touched: bool) -> &Pages {
        if self.found.kind == Kind::Device || !has_touched { &self.added } else { &self.touched }
    }

    fn cold_pages(&self, has_touched: bool) -> u64 {
        self.added.both(self.needed(has_touched)).count()
    }

    fn finish(self, has_touched: bool) -> Option<Touched> {
        let is_directory = self.found.kind == Kind::Directory;
        let pages = if is_directory { Pages::default() } else { self.needed(has_touched).clone() };
        (is_directory || !pages.is_empty()).then_some(Touched {
            path: self.found.path,
            kind: self.found.kind,
            stamp: self.found.stamp,
            pages,
            stale: Pages::default(),
            weight: 1.0,
        })
    }
}
