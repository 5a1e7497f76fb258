//! The statistics of each file: a table of fixed size, 4-way set-associative by the file's hash. If a set is full, the
//! newest file replaces another one. The table may forget a file, and concurrent updates may lose one; either costs a few
//! blocks until the same is known again.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::cost::{FileHistory, MIN_RUN_FOR_LEAST, running, undisturbed};
use super::decision::FileAdmission;

/// After this many blocks the counts are halved, so that recent reads count most.
const HALVE_AFTER: u32 = 4096;

/// Rows per set: with one, two files of a few hundred that share a row would replace each other all the time.
const WAYS: usize = 4;

/// A run is sequential if it begins at most this many blocks from the last one: kernel readahead can overtake itself, and
/// stored blocks are not read.
const NEAR: u64 = 64;

/// The table.
#[derive(Debug)]
pub(super) struct Table {
    rows: Box<[FileRow]>,
}

/// The statistics of one file.
#[derive(Debug, Default)]
pub(super) struct FileRow {
    /// The file's hash, never 0.
    tag: AtomicU64,
    size: AtomicU64,
    last_block: AtomicU64,
    admission: AtomicU32,
    misses: AtomicU32,
    hits: AtomicU32,
    runs: AtomicU32,
    sequential: AtomicU32,
    backing_us: AtomicU32,
    backing_least_us: AtomicU32,
    all_runs: AtomicU32,
}

impl Table {
    pub fn new(files: usize) -> Self {
        Self { rows: (0..files.next_multiple_of(WAYS).max(WAYS)).map(|_| FileRow::default()).collect() }
    }

    /// The row of the file with this hash. A row of another file is cleared first.
    pub fn row(&self, file: u64) -> &FileRow {
        let hash = file | 1;
        let set = &self.rows[((hash >> 1) as usize % (self.rows.len() / WAYS)) * WAYS..][..WAYS];
        let is = |tag: u64| set.iter().find(|row| row.tag.load(Relaxed) == tag);
        let row = is(hash).or_else(|| is(0)).unwrap_or(&set[(hash >> 48) as usize % WAYS]);
        if row.tag.load(Relaxed) != hash {
            row.clear();
            row.tag.store(hash, Relaxed);
        }
        row
    }

    /// Known files by treatment.
    pub fn count(&self) -> [u64; 3] {
        let mut counts = [0; 3];
        for row in self.rows.iter().filter(|row| row.tag.load(Relaxed) != 0) {
            counts[row.admission() as usize] += 1;
        }
        counts
    }
}

impl FileRow {
    pub fn admission(&self) -> FileAdmission {
        match self.admission.load(Relaxed) {
            0 => FileAdmission::Admit,
            1 => FileAdmission::Decline,
            _ => FileAdmission::Passthrough,
        }
    }

    pub fn history(&self) -> FileHistory {
        FileHistory {
            size: self.size.load(Relaxed),
            misses: self.misses.load(Relaxed),
            hits: self.hits.load(Relaxed),
            runs: self.runs.load(Relaxed),
            sequential: self.sequential.load(Relaxed),
            backing_us: f32::from_bits(self.backing_us.load(Relaxed)),
            backing_least_us: f32::from_bits(self.backing_least_us.load(Relaxed)),
        }
    }

    /// Sets the treatment and clears the counts, which belong to the previous one.
    pub fn decide(&self, admission: FileAdmission) {
        for count in [&self.misses, &self.hits, &self.runs, &self.sequential] {
            count.store(0, Relaxed);
        }
        self.admission.store(admission as u32, Relaxed);
    }

    pub fn set_size(&self, blocks: u64) {
        self.size.store(blocks, Relaxed);
    }

    /// Records a run of blocks read from the backing file from `block` on. Returns the number of earlier runs, which wraps.
    pub fn read_at(&self, block: u64) -> u32 {
        let near = block.abs_diff(self.last_block.swap(block, Relaxed)) <= NEAR;
        self.runs.fetch_add(1, Relaxed);
        self.sequential.fetch_add(u32::from(near), Relaxed);
        self.all_runs.fetch_add(1, Relaxed)
    }

    pub fn note_backing_read(&self, blocks: u32, us: f32) {
        let old = |us: &AtomicU32| f32::from_bits(us.load(Relaxed));
        self.backing_us.store(running(old(&self.backing_us), us).to_bits(), Relaxed);
        if blocks >= MIN_RUN_FOR_LEAST {
            self.backing_least_us.store(undisturbed(old(&self.backing_least_us), us).to_bits(), Relaxed);
        }
        self.note_misses(blocks);
    }

    pub fn note_misses(&self, blocks: u32) {
        if self.misses.fetch_add(blocks, Relaxed) > HALVE_AFTER.max(self.old_enough()) {
            self.forget_half();
        }
    }

    pub fn note_hit(&self, blocks: u32) {
        if self.hits.fetch_add(blocks, Relaxed) > HALVE_AFTER {
            self.forget_half();
        }
    }

    /// A large file must be read twice over before a decision.
    fn old_enough(&self) -> u32 {
        u32::try_from(self.size.load(Relaxed).saturating_mul(3)).unwrap_or(u32::MAX / 2)
    }

    fn forget_half(&self) {
        for count in [&self.misses, &self.hits, &self.runs, &self.sequential] {
            count.store(count.load(Relaxed) / 2, Relaxed);
        }
    }

    fn clear(&self) {
        self.decide(FileAdmission::Admit);
        for count in [&self.backing_us, &self.backing_least_us, &self.all_runs] {
            count.store(0, Relaxed);
        }
        for count in [&self.size, &self.last_block] {
            count.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

    use super::*;

    #[test]
    fn hundreds_of_files_are_all_known_and_more_than_there_are_rows_are_not() {
        let table = Table::new(4096);
        let hash = |file: u64| BuildHasherDefault::<DefaultHasher>::default().hash_one(("file", file));
        let known = |files: u64| {
            (0..files).for_each(|file| table.row(hash(file)).set_size(file + 1));
            (0..files).filter(|file| table.row(hash(*file)).history().size == file + 1).count()
        };
        assert_eq!(known(400), 400);
        assert!((1..=4096).contains(&known(20_000)));
    }
}
