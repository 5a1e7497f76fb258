//! One launch while it is being recorded.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use eke_model::process::is_of_service;

use super::arguments::GivenPaths;
use super::event::{Exec, Inode, PageUse, TracedFile};
use super::rules::{Now, ProgramState, Settings, Starter};
use crate::file_set::{FileSet, Kind, Touched, UsedBy, may_read_for};
use crate::launch::{Launch, LaunchEnd};
use crate::missing::ColdFile;
use crate::pages::{Pages, Span};
use crate::program::{Program, ProgramId};

/// The most started programs that a launch remembers.
pub(super) const STARTED: usize = 8;

/// The most processes tracked per launch. Others are not waited for, so such a launch may end by its quiet time or time limit.
const PROCESSES: usize = 8192;

/// The weight of a file that the launch was given: as if one of two launches used it. The next launch decides whether it is a habit.
const GIVEN_WEIGHT: f32 = 0.5;

/// More files of the home's documents than a launch there opens at its start: it walks through them.
const DOCUMENTS: usize = 64;

/// More runs of pages of metadata than a file needs: with its inode, its directory, its extents; often fewer, as neighbours share them. Not pages: the kernel
/// reads those around an inode, too (`inode_readahead_blks`, Documentation/admin-guide/ext4.rst).
const METADATA_OF_FILE: usize = 4;
/// A small program may be in a deep directory.
const LEAST_FILES: usize = 16;

/// The record of a launch so far.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) program: Program,
    pub(super) known: ProgramState,
    pub(super) uid: u32,
    pub(super) starter: Starter,
    began: Now,
    first: u32,
    given: GivenPaths,
    /// Whether a recorded launch started it.
    pub(super) is_within: bool,
    processes: BTreeSet<u32>,
    /// The programs that its processes started.
    pub(super) started: Vec<ProgramId>,
    /// Whether its first process became another program.
    pub(super) became: bool,
    last_new: Duration,
    files: Vec<File>,
    by_inode: BTreeMap<Inode, Option<usize>>,
    pages: u64,
    /// Pages whose first use, or first arrival where uses are not reported, was after one of its processes had started another program.
    pages_after_start: u64,
    has_touched: bool,
    read_bytes: u64,
    is_lost: bool,
}

/// Which pages of a file were needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Evidence {
    /// Those that were used.
    Uses,
    /// Those that entered memory: no use was reported.
    Arrivals,
    /// Both: the kernel reports hardly any uses (before Linux 6.12).
    Both,
}

#[derive(Debug)]
struct File {
    found: TracedFile,
    /// Pages that were used.
    touched: Pages,
    /// Pages that entered the page cache, used or only read ahead.
    added: Pages,
    /// Whether the launch itself touched it, not only a process that has left the launch.
    is_own: bool,
}

impl Recording {
    pub(super) fn new(
        exec: &Exec,
        starter: Starter,
        program: Program,
        known: ProgramState,
        is_within: bool,
        now: Now,
    ) -> Self {
        Self {
            program,
            known,
            uid: exec.uid,
            starter,
            began: now,
            first: exec.pid,
            given: GivenPaths::default(),
            is_within,
            processes: BTreeSet::from([exec.pid]),
            started: Vec::new(),
            became: false,
            last_new: now.mono,
            files: Vec::new(),
            by_inode: BTreeMap::new(),
            pages: 0,
            pages_after_start: 0,
            has_touched: false,
            read_bytes: 0,
            is_lost: false,
        }
    }

    /// What the launch was given to work on.
    pub(super) fn give(&mut self, given: GivenPaths) {
        self.given = given.of(&self.program);
    }

    /// Whether the launch, not its program, brought the file along.
    fn is_given(&self, path: &Path, walks_home: bool) -> bool {
        let is_its = *path == self.program.exe || self.program.script.as_deref() == Some(path);
        !is_its && (self.given.has(path) || walks_home && self.may_be_document(path))
    }

    fn may_be_document(&self, path: &Path) -> bool {
        self.given.may_be_document(path, &self.program)
    }

    /// Whether it walks through the home, as `grep -r` does there without naming it. A service keeps its data there.
    fn walks_home(&self) -> bool {
        let is_one = |file: &&File| {
            file.is_own && file.found.kind != Kind::Device && self.may_be_document(&file.found.path)
        };
        let is_service = self.uid != 0 && is_of_service(self.uid);
        !is_service && self.files.iter().filter(is_one).nth(DOCUMENTS).is_some()
    }

    /// Adds a process.
    pub(super) fn fork(&mut self, pid: u32) {
        if self.processes.len() < PROCESSES {
            self.processes.insert(pid);
        }
    }

    /// A process has executed another program. Before the kernel reports that, it reads the first pages of the executable and of the script for the
    /// process, which are not this program's.
    pub(super) fn leave(&mut self, pid: u32, program: Option<&Program>) {
        self.processes.remove(&pid);
        self.became |= pid == self.first;
        let Some(program) = program else { return };
        let id = program.id();
        if self.started.len() < STARTED && !self.started.contains(&id) {
            self.started.push(id);
        }
        let own = &self.program.exe;
        let is_its =
            |path: &PathBuf| path != own && (*path == program.exe || program.script.as_ref() == Some(path));
        for file in self.files.iter_mut().filter(|file| is_its(&file.found.path)) {
            (file.touched, file.added, file.is_own) = (Pages::default(), Pages::default(), false);
        }
    }

    /// The program's bytes of reads, where single pages are not traced.
    pub(super) fn read(&mut self, bytes: u64) {
        self.read_bytes = self.read_bytes.max(bytes);
    }

    /// The description of a file, if it has one.
    pub(super) fn description(&self, inode: Inode) -> Option<Option<&TracedFile>> {
        let at = *self.by_inode.get(&inode)?;
        Some(at.and_then(|at| self.files.get(at)).map(|file| &file.found))
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

    /// Adds the description of a file. It counts as touched if `is_own`, or with its first page. Files of users other than root and the starter are
    /// left out: what one user puts into the way of a shared program must not be read for all.
    pub(super) fn file(
        &mut self,
        inode: Inode,
        found: Option<&TracedFile>,
        is_own: bool,
        settings: &Settings,
    ) {
        if let Some(at) = self.by_inode.get(&inode) {
            let file = at.and_then(|at| self.files.get_mut(at));
            file.into_iter().for_each(|file| file.is_own |= is_own);
            return;
        }
        if self.by_inode.len() >= settings.files {
            self.is_lost = true;
            return;
        }
        let found = found.filter(|found| may_read_for(self.uid, found.owner));
        if let Some(at) = found.and_then(|found| self.same(inode, found)) {
            self.by_inode.insert(inode, Some(at));
            self.files[at].is_own |= is_own;
            return;
        }
        self.by_inode.insert(inode, found.map(|_| self.files.len()));
        self.files.extend(found.map(|found| File {
            found: found.clone(),
            touched: Pages::default(),
            added: Pages::default(),
            is_own,
        }));
    }

    /// The same file with another generation: a part of the tracer does not know generations.
    fn same(&self, inode: Inode, found: &TracedFile) -> Option<usize> {
        let [first, last] = [0, u32::MAX].map(|generation| Inode { generation, ..inode });
        let mut known = self.by_inode.range(first..=last).filter_map(|(_, at)| *at);
        known.find(|at| self.files[*at].found.path == found.path)
    }

    /// Adds pages of a file that has a description.
    pub(super) fn touch(
        &mut self,
        inode: Inode,
        span: Span,
        how: PageUse,
        now: Duration,
        settings: &Settings,
    ) {
        let Some(file) = self.by_inode.get(&inode).copied().flatten().and_then(|at| self.files.get_mut(at))
        else {
            return;
        };
        let (pages, others) = match how {
            PageUse::Added => (&mut file.added, &file.touched),
            _ => (&mut file.touched, &file.added),
        };
        let is_use = how != PageUse::Added;
        let new = Pages::from_iter([span]).without(pages);
        if new.is_empty() {
            return;
        }
        // A page that was read ahead and then used is one page.
        let fresh = new.without(others).count();
        if (self.pages + fresh) * crate::PAGE_BYTES > settings.bytes {
            self.is_lost = true;
            return;
        }
        pages.insert(span);
        file.is_own = true;
        self.has_touched |= is_use;
        // pages that were only read ahead count too: this bounds the memory of the record
        self.pages += fresh;
        let of_use = match settings.sees_uses {
            true if is_use => new.count(),
            true => 0,
            false => fresh,
        };
        self.pages_after_start += if self.started.is_empty() { 0 } else { of_use };
        self.last_new = self.last_new.max(now);
    }

    /// Bytes that it began to use after it had started another program.
    pub(super) fn bytes_after_start(&self) -> u64 {
        self.pages_after_start * crate::PAGE_BYTES
    }

    /// The time since its begin.
    pub(super) fn age(&self, now: Now) -> Duration {
        now.mono.saturating_sub(self.began.mono)
    }

    /// Whether a process of it still runs its program.
    pub(super) fn runs(&self) -> bool {
        !self.processes.is_empty()
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

    /// The pages that it read from the disk and used, by file.
    pub(super) fn cold(&self, settings: &Settings) -> Vec<ColdFile> {
        let evidence = self.evidence(settings);
        let cold = |file: &File| ColdFile {
            path: file.found.path.clone(),
            kind: file.found.kind,
            pages: file.cold(evidence),
        };
        self.files.iter().map(cold).filter(|file| !file.pages.is_empty()).collect()
    }

    fn evidence(&self, settings: &Settings) -> Evidence {
        match (settings.sees_uses, self.has_touched) {
            (true, true) => Evidence::Uses,
            (true, false) => Evidence::Arrivals,
            // Even these have some uses: what is mapped at the begin, and what is requested by madvise(2).
            (false, _) => Evidence::Both,
        }
    }

    /// Why it ended, or why the record is incomplete.
    fn end(&self, ended: LaunchEnd, evidence: Evidence) -> LaunchEnd {
        let has_arrivals = || self.files.iter().any(|file| !file.added.is_empty());
        match (evidence, ended) {
            _ if self.is_lost => LaunchEnd::Lost,
            (Evidence::Arrivals, _) if has_arrivals() => LaunchEnd::Lost,
            (Evidence::Both, LaunchEnd::Limit) => LaunchEnd::Lost,
            (Evidence::Both, _) => LaunchEnd::WithoutUses,
            _ => ended,
        }
    }

    /// The complete record.
    pub(super) fn finish(self, ended: LaunchEnd, settings: &Settings) -> Launch {
        let evidence = self.evidence(settings);
        let ended = self.end(ended, evidence);
        let cold_pages: u64 = self.files.iter().map(|file| file.cold(evidence).count()).sum();
        let walks_home = self.walks_home();
        let weight =
            |file: &File| if self.is_given(&file.found.path, walks_home) { GIVEN_WEIGHT } else { 1.0 };
        let weights: Vec<f32> = self.files.iter().map(weight).collect();
        let files = self.files.into_iter().zip(weights);
        let used_by = UsedBy::One(self.starter.account);
        let mut files: Vec<Touched> =
            files.filter_map(|(file, weight)| file.finish(evidence, weight, used_by)).collect();
        if (walks_home || !self.given.is_empty()) && is_walk(&files) {
            files.retain(|file| file.kind != Kind::Device);
        }
        Launch {
            program: self.program,
            uid: self.uid,
            began_ns: self.began.real_ns,
            took: self.last_new.saturating_sub(self.began.mono),
            ended,
            set: FileSet { files },
            cold_bytes: self.read_bytes.max(cold_pages * crate::PAGE_BYTES),
        }
    }
}

/// Whether a launch walked through directories: it used far more metadata than its files need. ext4 shows neither the directories nor the files whose inodes
/// alone are read. If it was given anything, then that: the next launch walks elsewhere.
fn is_walk(files: &[Touched]) -> bool {
    let (metadata, files): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.kind == Kind::Device);
    let runs: usize = metadata.iter().map(|device| device.pages.spans().len()).sum();
    runs > METADATA_OF_FILE * LEAST_FILES.max(files.len())
}

impl File {
    /// The pages that were needed. For devices: all that entered memory, because the kernel reads single blocks there and later uses are not traced.
    fn needed(&self, evidence: Evidence) -> Cow<'_, Pages> {
        match evidence {
            _ if self.found.kind == Kind::Device => Cow::Borrowed(&self.added),
            Evidence::Uses => Cow::Borrowed(&self.touched),
            Evidence::Arrivals => Cow::Borrowed(&self.added),
            Evidence::Both => Cow::Owned(self.touched.union(&self.added)),
        }
    }

    fn cold(&self, evidence: Evidence) -> Pages {
        self.added.both(&self.needed(evidence))
    }

    fn finish(self, evidence: Evidence, weight: f32, used_by: UsedBy) -> Option<Touched> {
        let is_directory = self.found.kind == Kind::Directory;
        let pages = if is_directory { Pages::default() } else { self.needed(evidence).into_owned() };
        (is_directory && self.is_own || !pages.is_empty()).then_some(Touched {
            path: self.found.path,
            kind: self.found.kind,
            stamp: self.found.stamp,
            pages,
            stale: Pages::default(),
            weight,
            used_by,
        })
    }
}
