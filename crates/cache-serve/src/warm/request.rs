//! The thread that reads what a user names (`eke cache warm`), one request after the other.

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use eke_cache_mounts::status::WarmProgress;
use eke_cache_store::{Stats, Store};
use eke_cachefs::fs::{FileToWarm, Fs, Surveyed, ToWarm};
use eke_linux::Root;

use super::disk::Disks;
use super::{piece, step_back};
use crate::supervisor::channel::{FromWorker, send};

/// Between two messages about how far it is.
const TOLD_EVERY: Duration = Duration::from_millis(200);
/// After each piece it waits for requests of others, but not for ever: somebody waits for this, too.
const WAITS_AT_MOST: Duration = Duration::from_millis(200);
const POLL: Duration = Duration::from_millis(5);
/// What is warmed may take this share of the store. The rest is for what else is read.
const SHARE: f64 = 0.95;
/// How often the last message is tried: the supervisor's queue may be full.
const TRIES: u32 = 100;

/// A request.
#[derive(Debug)]
pub struct WarmJob {
    /// The supervisor's number of it.
    pub number: u64,
    /// Below the backing directory; empty for all of it.
    pub path: PathBuf,
}

/// Numbers of requests that nobody waits for any more.
#[derive(Debug, Default)]
pub struct StoppedJobs(Mutex<HashSet<u64>>);

impl StoppedJobs {
    /// Stops a request, also one that has not begun.
    pub fn stop(&self, number: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(number);
    }

    fn is_stopped(&self, number: u64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&number)
    }

    fn forget(&self, number: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
    }
}

/// Reads what users name.
pub struct Warmer {
    /// The file system.
    pub fs: Arc<Fs>,
    /// Its store.
    pub store: Arc<Store>,
    /// To the supervisor.
    pub channel: OwnedFd,
    /// What nobody waits for any more.
    pub stopped: Arc<StoppedJobs>,
}

impl Warmer {
    /// Works on requests until none can come any more.
    pub fn run(&self, root: &Root, jobs: &Receiver<WarmJob>) {
        step_back();
        let dir = self.fs.nodes().get(eke_cachefs::node::ROOT).and_then(|dir| self.fs.nodes().path(&dir));
        let Ok(dir) = dir else { return };
        let disks = Disks::of(root, dir.as_fd(), self.fs.tier_of());
        while let Ok(job) = jobs.recv() {
            let mut warming = Warming::new(self, &disks, job.number);
            warming.survey(&job.path);
            warming.read(&job.path);
            warming.tell_end();
            self.stopped.forget(job.number);
        }
    }
}

/// One request under way.
struct Warming<'w> {
    by: &'w Warmer,
    disks: &'w Disks,
    number: u64,
    told: Instant,
    progress: WarmProgress,
    /// The store when it began.
    before: Stats,
}

impl<'w> Warming<'w> {
    fn new(by: &'w Warmer, disks: &'w Disks, number: u64) -> Self {
        let (told, before) = (Instant::now(), by.store.stats());
        Self { by, disks, number, told, progress: WarmProgress::default(), before }
    }

    fn is_over(&self) -> bool {
        self.progress.full || self.by.stopped.is_stopped(self.number)
    }

    /// Counts files and bytes, to know how much there is.
    fn survey(&mut self, path: &Path) {
        let mut waiting = vec![path.to_owned()];
        while let (Some(path), false) = (waiting.pop(), self.is_over()) {
            match self.by.fs.survey(&path) {
                Ok(Surveyed::File(bytes)) => {
                    self.progress.files += 1;
                    self.progress.bytes.0 += bytes;
                }
                Ok(Surveyed::Directory(names)) => waiting.extend(names.iter().map(|name| path.join(name))),
                // Counted when it is read.
                Ok(Surveyed::Nothing) | Err(_) => {}
            }
            self.tell();
        }
        self.progress.surveyed = true;
    }

    /// Reads all below the path, in the order of the directories and of the inodes in each.
    fn read(&mut self, path: &Path) {
        let mut waiting = vec![path.to_owned()];
        while let (Some(path), false) = (waiting.pop(), self.is_over()) {
            match self.by.fs.open_to_warm(&path) {
                Ok(ToWarm::File(file)) => self.file(&file, &path),
                Ok(ToWarm::Directory(names)) => {
                    waiting.extend(names.iter().rev().map(|name| path.join(name)));
                }
                Ok(ToWarm::Nothing) => {}
                Err(e) => self.failed(&path, &e),
            }
            self.tell();
        }
    }

    fn file(&mut self, file: &FileToWarm, path: &Path) {
        let (tier, mut from) = (self.by.fs.tier(), 0);
        let (most, block) = (tier.warm_at_once(), tier.block_size());
        while from < file.size && !self.is_over() {
            let data = file.data_from(from, block);
            self.hole(data - from);
            let bytes = piece(data, file.size, most, block);
            from = bytes.end;
            if bytes.is_empty() {
                break;
            }
            match self.by.fs.warm(file, bytes.clone(), true) {
                Ok(warmed) => {
                    self.progress.passed.0 += bytes.end - bytes.start;
                    self.count(&warmed);
                }
                Err(e) => return self.failed(path, &e),
            }
            self.tell();
        }
        if from >= file.size {
            self.progress.files_done += 1;
        }
        self.by.fs.note_path(file.id, path);
    }

    /// A hole needs neither the disk nor memory.
    fn hole(&mut self, bytes: u64) {
        self.progress.passed.0 += bytes;
        self.progress.kept.0 += bytes;
    }

    fn count(&mut self, warmed: &eke_cachefs::tier::Warmed) {
        let progress = &mut self.progress;
        progress.read.0 += warmed.read;
        progress.kept.0 += warmed.kept;
        progress.taken.0 += warmed.taken;
        progress.incompressible.0 += warmed.incompressible;
        let now = self.by.store.stats();
        let was = &self.before;
        let all_before = was.zero + was.uncompressed + was.fast + was.recompressed;
        // More would evict what was read first.
        self.progress.full = warmed.no_room > 0
            || self.progress.taken > now.limit.scaled(SHARE)
            || now.evictions.saturating_sub(was.evictions) > all_before;
        if warmed.read > 0 {
            self.let_others_pass();
        }
    }

    fn let_others_pass(&self) {
        let until = Instant::now() + WAITS_AT_MOST;
        while self.disks.activity().in_flight > 0 && Instant::now() < until && !self.is_over() {
            std::thread::sleep(POLL);
        }
    }

    fn failed(&mut self, path: &Path, error: &std::io::Error) {
        self.progress.failed += 1;
        if self.progress.first_error.is_none() {
            self.progress.first_error = Some(format!("{}: {error}", path.display()));
        }
    }

    fn tell(&mut self) {
        if self.told.elapsed() >= TOLD_EVERY {
            self.told = Instant::now();
            let _ = send(self.by.channel.as_fd(), &FromWorker::Warming(self.number, self.progress.clone()));
        }
    }

    /// Whoever waits must get this one.
    fn tell_end(self) {
        let end = FromWorker::Warmed(self.number, self.progress);
        for _ in 0..TRIES {
            match send(self.by.channel.as_fd(), &end) {
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => std::thread::sleep(POLL),
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_can_be_stopped_before_it_begins() {
        let stopped = StoppedJobs::default();
        stopped.stop(7);
        assert!(stopped.is_stopped(7) && !stopped.is_stopped(8));
        stopped.forget(7);
        assert!(!stopped.is_stopped(7));
    }

    #[test]
    fn pieces_end_with_blocks() {
        assert_eq!(piece(0, 100, 64, 16), 0..64);
        assert_eq!(piece(64, 100, 64, 16), 64..100);
        assert_eq!(piece(0, 100, 30, 16), 0..16);
        assert_eq!(piece(0, 100, 1, 16), 0..16);
    }
}
