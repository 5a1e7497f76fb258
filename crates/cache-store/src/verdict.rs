//! Which files do not compress, so that the CPU is not spent on finding it out for each of their blocks.
//!
//! A table of fixed size, one word to a file, the newest file by hash wins: it may forget and costs a try then. Updates may
//! overtake each other; a lost one costs a try too.

use crate::error::OutOfMemory;
use crate::key::FileId;
use crate::sync::atomic::{AtomicU64, Ordering};

/// After this many blocks in a row that did not compress, a file is taken not to.
const ENOUGH: u64 = 8;

/// Of such a file one block in so many is tried still: files have parts, and change.
const TRY_ONE_IN: u64 = 32;

const STREAK: u64 = 0xff;
const SKIPPED_SHIFT: u32 = 8;
const TAG: u64 = !0xffff;

/// The table. A word: the file's tag, blocks skipped since the last try, failures in a row.
#[derive(Debug)]
pub(crate) struct Verdicts {
    words: Box<[AtomicU64]>,
}

impl Verdicts {
    /// Remembers up to `files` files.
    pub fn new(files: usize) -> Result<Self, OutOfMemory> {
        let mut words = Vec::new();
        words.try_reserve_exact(files.max(1))?;
        words.extend((0..files.max(1)).map(|_| AtomicU64::new(0)));
        Ok(Self { words: words.into_boxed_slice() })
    }

    /// Is it worth trying to compress a block of this file?
    pub fn worth_trying(&self, file: FileId) -> bool {
        let word = self.word(file);
        let (streak, skipped) = decode(word.load(Ordering::Relaxed), file);
        if streak < ENOUGH {
            return true;
        }
        let skipped = (skipped + 1) % TRY_ONE_IN;
        word.store(encode(file, streak, skipped), Ordering::Relaxed);
        skipped == 0
    }

    /// Do blocks of this file compress, as far as is known?
    pub fn compresses(&self, file: FileId) -> bool {
        decode(self.word(file).load(Ordering::Relaxed), file).0 < ENOUGH
    }

    /// A block of this file was tried; did it compress enough to pay?
    pub fn record(&self, file: FileId, paid: bool) {
        let word = self.word(file);
        let (streak, skipped) = decode(word.load(Ordering::Relaxed), file);
        let new = if paid { encode(file, 0, 0) } else { encode(file, (streak + 1).min(STREAK), skipped) };
        word.store(new, Ordering::Relaxed);
    }

    /// The file has other content now.
    pub fn forget(&self, file: FileId) {
        self.record(file, true);
    }

    fn word(&self, file: FileId) -> &AtomicU64 {
        &self.words[(file.hash() % self.words.len() as u64) as usize]
    }
}

fn encode(file: FileId, streak: u64, skipped: u64) -> u64 {
    (file.hash() & TAG) | (skipped << SKIPPED_SHIFT) | streak
}

/// Streak and skipped blocks, if the word is about this file.
fn decode(word: u64, file: FileId) -> (u64, u64) {
    if word & TAG == file.hash() & TAG { (word & STREAK, (word >> SKIPPED_SHIFT) & STREAK) } else { (0, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileId = FileId(7);

    #[test]
    fn a_file_that_fails_is_tried_now_and_then_and_comes_back() {
        shuttle::check_random(
            || {
                let verdicts = Verdicts::new(16).unwrap();
                (0..ENOUGH).for_each(|_| {
                    assert!(verdicts.worth_trying(FILE));
                    verdicts.record(FILE, false);
                });
                let tries = (0..10 * TRY_ONE_IN).filter(|_| verdicts.worth_trying(FILE)).count();
                assert_eq!(tries, 10);
                assert!(!verdicts.compresses(FILE) && verdicts.compresses(FileId(8)));
                verdicts.record(FILE, true);
                assert!((0..100).all(|_| verdicts.worth_trying(FILE)));
            },
            1,
        );
    }
}
