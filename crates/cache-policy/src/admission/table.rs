//! What is known of each file: a table of fixed size, a row to a file in one of a few places that its hash gives; where these are
//! taken, one of them is the newest file's. It may forget, and updates that meet may lose one; either costs some blocks until
//! the same is known again.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::cost::{Seen, TELLING, Verdict, running, undisturbed};

/// Blocks after which half is forgotten, so that what a file is now counts.
const OLD: u32 = 4096;

/// Places that a file's row may have, side by side: with one, two files of a few hundred that meet would make each other forgotten
/// at every turn.
const PLACES: usize = 4;

/// A run that begins at most so many blocks after the last one, or before it, goes on with it: the kernel's readahead may
/// overtake itself, and blocks that were held are not read.
const NEAR: u64 = 64;

/// The table.
#[derive(Debug)]
pub(super) struct Table {
    rows: Box<[Row]>,
}

/// One file's.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// The file's hash, never 0.
    tag: AtomicU64,
    size: AtomicU64,
    last_block: AtomicU64,
    verdict: AtomicU32,
    below: AtomicU32,
    hits: AtomicU32,
    runs: AtomicU32,
    sequential: AtomicU32,
    backing_us: AtomicU32,
    backing_least_us: AtomicU32,
    turns: AtomicU32,
}

impl Table {
    pub fn new(files: usize) -> Self {
        Self { rows: (0..files.next_multiple_of(PLACES).max(PLACES)).map(|_| Row::default()).collect() }
    }

    /// The row of the file with this hash; if it was another's it is cleared.
    pub fn row(&self, file: u64) -> &Row {
        let hash = file | 1;
        let places = &self.rows[((hash >> 1) as usize % (self.rows.len() / PLACES)) * PLACES..][..PLACES];
        let is = |wanted: u64| places.iter().find(|row| row.tag.load(Relaxed) == wanted);
        let row = is(hash).or_else(|| is(0)).unwrap_or(&places[(hash >> 48) as usize % PLACES]);
        if row.tag.load(Relaxed) != hash {
            row.clear();
            row.tag.store(hash, Relaxed);
        }
        row
    }

    /// Files known, by verdict.
    pub fn count(&self) -> [u64; 3] {
        let mut counts = [0; 3];
        for row in self.rows.iter().filter(|row| row.tag.load(Relaxed) != 0) {
            counts[row.verdict() as usize] += 1;
        }
        counts
    }
}

impl Row {
    pub fn verdict(&self) -> Verdict {
        match self.verdict.load(Relaxed) {
            0 => Verdict::TakenIn,
            1 => Verdict::NotTakenIn,
            _ => Verdict::Passthrough,
        }
    }

    pub fn seen(&self) -> Seen {
        Seen {
            size: self.size.load(Relaxed),
            below: self.below.load(Relaxed),
            hits: self.hits.load(Relaxed),
            runs: self.runs.load(Relaxed),
            sequential: self.sequential.load(Relaxed),
            backing_us: f32::from_bits(self.backing_us.load(Relaxed)),
            backing_least_us: f32::from_bits(self.backing_least_us.load(Relaxed)),
        }
    }

    /// From now on; what was seen before was under another verdict.
    pub fn decide(&self, verdict: Verdict) {
        for count in [&self.below, &self.hits, &self.runs, &self.sequential] {
            count.store(0, Relaxed);
        }
        self.verdict.store(verdict as u32, Relaxed);
    }

    pub fn set_size(&self, blocks: u64) {
        self.size.store(blocks, Relaxed);
    }

    /// A run of blocks was read from the backing file from `block` on; the runs before it, in a number that wraps.
    pub fn read_at(&self, block: u64) -> u32 {
        let near = block.abs_diff(self.last_block.swap(block, Relaxed)) <= NEAR;
        self.runs.fetch_add(1, Relaxed);
        self.sequential.fetch_add(u32::from(near), Relaxed);
        self.turns.fetch_add(1, Relaxed)
    }

    pub fn note_backing_read(&self, blocks: u32, us: f32) {
        let old = |us: &AtomicU32| f32::from_bits(us.load(Relaxed));
        self.backing_us.store(running(old(&self.backing_us), us).to_bits(), Relaxed);
        if blocks >= TELLING {
            self.backing_least_us.store(undisturbed(old(&self.backing_least_us), us).to_bits(), Relaxed);
        }
        if self.below.fetch_add(blocks, Relaxed) > OLD.max(self.old_enough()) {
            self.forget_half();
        }
    }

    pub fn note_hit(&self, blocks: u32) {
        if self.hits.fetch_add(blocks, Relaxed) > OLD {
            self.forget_half();
        }
    }

    /// A large file must be read twice over before anything can be said.
    fn old_enough(&self) -> u32 {
        u32::try_from(self.size.load(Relaxed).saturating_mul(3)).unwrap_or(u32::MAX / 2)
    }

    fn forget_half(&self) {
        for count in [&self.below, &self.hits, &self.runs, &self.sequential] {
            count.store(count.load(Relaxed) / 2, Relaxed);
        }
    }

    fn clear(&self) {
        self.decide(Verdict::TakenIn);
        for count in [&self.backing_us, &self.backing_least_us, &self.turns] {
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
            (0..files).filter(|file| table.row(hash(*file)).seen().size == file + 1).count()
        };
        assert_eq!(known(400), 400);
        assert!((1..=4096).contains(&known(20_000)));
    }
}
