//! The thread that reads again what was hot before the last unmount, and keeps the list of what is hot now.

use std::collections::{HashSet, VecDeque};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use eke_cache_mounts::status::{RememberState, RememberStats};
use eke_cache_store::Store;
use eke_cachefs::fs::{FileToWarm, Fs, ToWarm};
use eke_linux::Root;
use eke_model::units::Bytes;

use super::choose::{StoredBlock, fill};
use super::disk::Disks;
use super::give_way::{Advice, GiveWay};
use super::keep::HotFile;
use super::list::{HotList, HotPart};
use super::{Clock, piece, step_back};
use crate::log::log_line;

/// Between two writes of the list. A crash loses what became hot since the last one.
const SAVED_EVERY: Duration = Duration::from_secs(300);
/// Between two looks at whether the mount stands aside.
const LOOK: Duration = Duration::from_secs(5);
/// Clients accept no greater numbers, and a list may be anything.
const MOST_LISTED: u64 = 1 << 56;
/// From this heat on blocks enter the main queue again.
const STAYS: u8 = 2;

/// What is remembered of one mount.
pub struct Remember {
    file: HotFile,
    place: PathBuf,
    dir: PathBuf,
    fs: Arc<Fs>,
    store: Arc<Store>,
    progress: Mutex<Progress>,
    /// Text of the list as it was written last.
    written: Mutex<String>,
    done: AtomicU64,
    waits: AtomicBool,
    /// The list stays as it is.
    is_held: AtomicBool,
    now: Clock,
}

#[derive(Default)]
struct Progress {
    /// What is not read again yet.
    pending: VecDeque<HotPart>,
    listed: u64,
    state: RememberState,
    why: Option<String>,
}

impl Remember {
    /// Remembers in this file.
    pub fn new(file: HotFile, (dir, place): (&Path, &Path), fs: Arc<Fs>, store: Arc<Store>) -> Self {
        let since = Instant::now();
        Self {
            file,
            place: place.to_owned(),
            dir: dir.to_owned(),
            fs,
            store,
            progress: Mutex::default(),
            written: Mutex::default(),
            done: AtomicU64::new(0),
            waits: AtomicBool::new(false),
            is_held: AtomicBool::new(false),
            now: Box::new(move || since.elapsed()),
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of the list that no file has.
    fn unlist(&self, bytes: u64) {
        let mut progress = self.progress();
        progress.listed = progress.listed.saturating_sub(bytes);
    }

    /// How far it is.
    pub fn stats(&self) -> RememberStats {
        let progress = self.progress();
        let state = match progress.state {
            RememberState::Reading if self.waits.load(Relaxed) => RememberState::Waiting,
            state => state,
        };
        let done = self.done.load(Relaxed).min(progress.listed);
        RememberStats { state, why: progress.why.clone(), listed: Bytes(progress.listed), done: Bytes(done) }
    }

    /// Reads the list again while the disk is idle, then writes it now and then. Never returns.
    pub fn run(&self, root: &Root) -> ! {
        step_back();
        loop {
            while self.is_held.load(Relaxed) {
                std::thread::sleep(LOOK);
            }
            self.read_list(root);
            self.save_now_and_then();
        }
    }

    /// Until the mount has stood aside: the store is empty then.
    fn save_now_and_then(&self) {
        loop {
            let until = (self.now)() + SAVED_EVERY;
            while (self.now)() < until {
                if self.is_held.load(Relaxed) {
                    return;
                }
                std::thread::sleep(LOOK);
            }
            self.save();
        }
    }

    fn read_list(&self, root: &Root) {
        let mut saved = (self.now)();
        match self.file.read(&self.dir, &self.place) {
            Ok(Some(list)) => self.read_again(root, list, &mut saved),
            Ok(None) => self.ended(RememberState::Done, None),
            Err(why) => {
                log_line(&why);
                self.ended(RememberState::Done, Some(why));
            }
        }
    }

    fn ended(&self, state: RememberState, why: Option<String>) {
        let mut progress = self.progress();
        (progress.state, progress.why) = (state, why);
    }

    fn read_again(&self, root: &Root, list: HotList, saved: &mut Duration) {
        let block_size = self.fs.tier().block_size();
        {
            let mut progress = self.progress();
            progress.listed = list.bytes().min(MOST_LISTED);
            progress.state = RememberState::Reading;
            // Of another version with other blocks: what is left over is written in blocks of today.
            progress.pending =
                list.parts.into_iter().map(|part| in_blocks_of(part, list.block_size, block_size)).collect();
        }
        let Some(mut reading) = Reading::new(self, root) else {
            return self.ended(RememberState::Done, Some("the backing directory cannot be examined".into()));
        };
        loop {
            let Some(part) = self.progress().pending.front().cloned() else {
                return self.ended(RememberState::Done, None);
            };
            if !reading.part(&part) {
                return self.ended(RememberState::Full, None);
            }
            self.progress().pending.pop_front();
            if (self.now)().saturating_sub(*saved) > SAVED_EVERY {
                *saved = (self.now)();
                self.save();
            }
        }
    }

    /// Writes the list, and then leaves it as it is: the store is about to be emptied, or is empty already. Or writes it again from now on.
    pub fn hold(&self, is_held: bool) {
        if is_held && self.store.stats().raw > Bytes(0) {
            self.save();
        }
        self.is_held.store(is_held, Relaxed);
    }

    /// Writes the list if it has changed. Call it at the end, too.
    pub fn save(&self) {
        if self.is_held.load(Relaxed) {
            return;
        }
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(list) = self.list() else { return };
        let text = list.text();
        if *written == text {
            return;
        }
        match self.file.write(&list) {
            Ok(()) => *written = text,
            Err(why) => {
                log_line(&why);
                self.progress().why = Some(why);
            }
        }
    }

    /// What is hot now, and what is not read again yet. `None`: there is no memory for it.
    fn list(&self) -> Option<HotList> {
        let stats = self.store.stats();
        let stored = stats.zero + stats.uncompressed + stats.fast + stats.recompressed;
        let mut blocks: Vec<StoredBlock> = Vec::new();
        // Blocks that come meanwhile wait for the next list: no memory is requested under the store's locks.
        blocks.try_reserve_exact(usize::try_from(stored).ok()?).ok()?;
        self.store.each(|key, heat| {
            if blocks.len() < blocks.capacity() {
                blocks.push((key.file, key.block, heat));
            }
        });
        let files: HashSet<_> = blocks.iter().map(|block| block.0).collect();
        self.fs.retain_paths(&files);
        drop(files);
        // After a full store the rest of the list was colder than what is there.
        let pending: Vec<HotPart> = match self.progress() {
            progress if progress.state == RememberState::Full => Vec::new(),
            progress => progress.pending.iter().cloned().collect(),
        };
        let block_size = self.fs.tier().block_size();
        let mut list =
            HotList { dir: self.dir.clone(), place: self.place.clone(), block_size, parts: Vec::new() };
        fill(&mut list, blocks, |file| self.fs.path_of(file), &pending);
        Some(list)
    }
}

/// The reading of one list.
struct Reading<'r> {
    remember: &'r Remember,
    disks: Disks,
    way: GiveWay,
    /// Blocks that the store had evicted when this began.
    evicted: u64,
}

impl<'r> Reading<'r> {
    fn new(remember: &'r Remember, root: &Root) -> Option<Self> {
        let dir = remember.fs.nodes().get(eke_cachefs::node::ROOT).ok()?;
        let dir = remember.fs.nodes().path(&dir).ok()?;
        let disks = Disks::of(root, dir.as_fd(), remember.fs.tier_of());
        let way = GiveWay::new(remember.fs.tier().warm_at_once());
        Some(Self { remember, disks, way, evicted: remember.store.stats().evictions })
    }

    /// Reads one part. False: the store is full. A file that is gone or cannot be read is passed over: the list is a hint.
    fn part(&mut self, part: &HotPart) -> bool {
        let block_size = self.remember.fs.tier().block_size();
        self.wait();
        let found = self.remember.fs.open_to_warm(&part.path);
        self.way.looked_up((self.remember.now)(), self.disks.activity());
        let Ok(ToWarm::File(file)) = found else {
            self.remember.unlist(part.count() * block_size);
            return true;
        };
        self.remember.fs.note_path(file.id, &part.path);
        for range in &part.blocks {
            let (from, to) = (range.start * block_size, range.end.saturating_mul(block_size));
            let end = to.min(file.size).max(from);
            // The list counts whole blocks, and the file may have been longer.
            self.remember.unlist(to - end);
            if !self.range(&file, from, end, part.heat >= STAYS) {
                return false;
            }
            self.remember.done.fetch_add(end - from, Relaxed);
        }
        true
    }

    fn range(&mut self, file: &FileToWarm, mut from: u64, to: u64, stay: bool) -> bool {
        let (fs, block) = (&self.remember.fs, self.remember.fs.tier().block_size());
        while from < to {
            let data = file.data_from(from, block).min(to);
            let bytes = piece(data, to, self.wait(), block);
            from = bytes.end;
            if bytes.is_empty() {
                break;
            }
            let before = (self.remember.now)();
            let Ok(warmed) = fs.warm(file, bytes, stay) else { return true };
            let now = (self.remember.now)();
            if warmed.read > 0 {
                self.way.did_read(now, now.saturating_sub(before), self.disks.activity());
            }
            if warmed.no_room > 0 || self.remember.store.stats().evictions > self.evicted {
                return false;
            }
        }
        true
    }

    /// Waits until the disk is idle. Returns the bytes to read.
    fn wait(&mut self) -> u64 {
        loop {
            let advice = self.way.next((self.remember.now)(), self.disks.activity());
            self.remember.waits.store(self.way.waits(), Relaxed);
            match advice {
                Advice::Read(bytes) => return bytes,
                Advice::Wait(pause) => std::thread::sleep(pause),
            }
        }
    }
}

/// The part in blocks of another size: all that it touches.
fn in_blocks_of(part: HotPart, was: u64, is: u64) -> HotPart {
    if was == is {
        return part;
    }
    let mut blocks: Vec<std::ops::Range<u64>> = Vec::with_capacity(part.blocks.len());
    for range in part.blocks {
        let start = range.start.saturating_mul(was) / is;
        let range = start.max(blocks.last().map_or(0, |before| before.end))
            ..range.end.saturating_mul(was).div_ceil(is);
        blocks.extend((!range.is_empty()).then_some(range));
    }
    HotPart { blocks, ..part }
}

#[expect(clippy::single_range_in_vec_init, reason = "a list of ranges with one of them")]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_other_blocks_is_read_in_those_of_today() {
        let part = |blocks| HotPart { heat: 1, path: "a".into(), blocks };
        let small = part(vec![0..3, 4..5, 9..10]);
        assert_eq!(in_blocks_of(small.clone(), 4096, 16_384).blocks, [0..1, 1..2, 2..3]);
        assert_eq!(in_blocks_of(small.clone(), 16_384, 4096).blocks, [0..12, 16..20, 36..40]);
        assert_eq!(in_blocks_of(part(vec![0..1, 1..2]), 4096, 16_384).blocks, [0..1]);
        assert_eq!(in_blocks_of(small.clone(), 4096, 4096), small);
    }
}
