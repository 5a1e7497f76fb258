//! Remembers which files do not compress, so that no CPU time is spent on each of their blocks, and how it is with all of them.
//!
//! The table has a fixed size and one word per file. Of two files with the same slot, the newer one wins. A forgotten file,
//! or an update lost to a concurrent one, costs one more attempt.

use crate::error::OutOfMemory;
use crate::key::FileId;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A file counts as incompressible after this many blocks in a row that did not compress.
const ENOUGH: u64 = 8;

/// Of an incompressible file, one block in this many is still tried: files have different parts, and change.
const TRY_ONE_IN: u64 = 32;

/// The weight of a block in the share of all files' blocks that do not compress.
const WEIGHT: f32 = 1.0 / 256.0;

const STREAK: u64 = 0xff;
const SKIPPED_SHIFT: u32 = 8;
const SKIPPED: u64 = 0x7f;
const PAID: u64 = 1 << 15;
const TAG: u64 = !0xffff;

/// The table. A word holds the file's tag, whether any block compressed, the blocks skipped since the last attempt, and the failures in a
/// row.
#[derive(Debug)]
pub(crate) struct Compressibility {
    words: Box<[AtomicU64]>,
    /// The share of blocks that did not compress, the newest counting most: bits of an `f32`.
    failing: AtomicU32,
}

impl Compressibility {
    /// Remembers up to `files` files.
    pub fn new(files: usize) -> Result<Self, OutOfMemory> {
        let mut words = Vec::new();
        words.try_reserve_exact(files.max(1))?;
        words.extend((0..files.max(1)).map(|_| AtomicU64::new(0)));
        Ok(Self { words: words.into_boxed_slice(), failing: AtomicU32::new(0) })
    }

    /// True if compression of a block of this file should be tried.
    pub fn should_try(&self, file: FileId) -> bool {
        let word = self.word(file);
        let known = decode(word.load(Ordering::Relaxed), file);
        if known.streak < ENOUGH {
            return true;
        }
        let skipped = (known.skipped + 1) % TRY_ONE_IN;
        word.store(encode(file, Known { skipped, ..known }), Ordering::Relaxed);
        skipped == 0
    }

    /// True if blocks of this file compress: one did, and not many failed since.
    pub fn compresses(&self, file: FileId) -> bool {
        let known = decode(self.word(file).load(Ordering::Relaxed), file);
        known.paid && known.streak < ENOUGH
    }

    /// How many of the file's blocks in a row did not compress, counted up to 255. `None`: none was tried, or that is forgotten.
    pub fn failures(&self, file: FileId) -> Option<u64> {
        let word = self.word(file).load(Ordering::Relaxed);
        is_of(word, file).then(|| decode(word, file).streak)
    }

    /// The share of all files' blocks that do not compress, 0 to 1. It starts at 0.
    pub fn failing(&self) -> f32 {
        f32::from_bits(self.failing.load(Ordering::Relaxed))
    }

    /// Records an attempt; `paid`: the block compressed well enough.
    pub fn record(&self, file: FileId, paid: bool) {
        let word = self.word(file);
        let known = decode(word.load(Ordering::Relaxed), file);
        let new = if paid {
            Known { paid, ..Known::default() }
        } else {
            Known { streak: (known.streak + 1).min(STREAK), ..known }
        };
        word.store(encode(file, new), Ordering::Relaxed);
        let (failing, value) = (self.failing(), if paid { 0.0 } else { 1.0 });
        // Of two at once one may be lost.
        self.failing.store((failing + (value - failing) * WEIGHT).to_bits(), Ordering::Relaxed);
    }

    /// The file's content has changed.
    pub fn forget(&self, file: FileId) {
        let word = self.word(file);
        if is_of(word.load(Ordering::Relaxed), file) {
            word.store(0, Ordering::Relaxed);
        }
    }

    fn word(&self, file: FileId) -> &AtomicU64 {
        &self.words[(file.hash() % self.words.len() as u64) as usize]
    }
}

/// What is known of a file.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// Failures in a row.
    streak: u64,
    /// Blocks skipped since the last attempt.
    skipped: u64,
    /// Some block compressed.
    paid: bool,
}

fn encode(file: FileId, known: Known) -> u64 {
    let paid = if known.paid { PAID } else { 0 };
    (file.hash() & TAG) | paid | (known.skipped << SKIPPED_SHIFT) | known.streak
}

/// A word of 0 is nobody's.
fn is_of(word: u64, file: FileId) -> bool {
    word != 0 && word & TAG == file.hash() & TAG
}

/// Nothing is known if the word belongs to another file.
fn decode(word: u64, file: FileId) -> Known {
    if !is_of(word, file) {
        return Known::default();
    }
    Known { streak: word & STREAK, skipped: (word >> SKIPPED_SHIFT) & SKIPPED, paid: word & PAID != 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileId = FileId(7);

    #[test]
    fn failures_are_known_by_file_and_of_all() {
        shuttle::check_random(
            || {
                let compressibility = Compressibility::new(1 << 12).unwrap();
                assert_eq!((compressibility.failures(FILE), compressibility.failing()), (None, 0.0));
                (0..3).for_each(|_| compressibility.record(FILE, false));
                assert_eq!(compressibility.failures(FILE), Some(3));
                (0..1000).for_each(|n| compressibility.record(FileId(n), false));
                assert!(compressibility.failing() > 0.95);
                (0..300).for_each(|n| compressibility.record(FileId(n), true));
                assert!(compressibility.failing() < 0.5);
            },
            1,
        );
    }

    #[test]
    fn a_file_that_fails_is_tried_now_and_then_and_comes_back() {
        shuttle::check_random(
            || {
                let compressibility = Compressibility::new(16).unwrap();
                (0..ENOUGH).for_each(|_| {
                    assert!(compressibility.should_try(FILE));
                    compressibility.record(FILE, false);
                });
                let tries = (0..10 * TRY_ONE_IN).filter(|_| compressibility.should_try(FILE)).count();
                assert_eq!(tries, 10);
                assert!(!compressibility.compresses(FILE) && !compressibility.compresses(FileId(8)));
                compressibility.record(FILE, true);
                (1..ENOUGH).for_each(|_| compressibility.record(FILE, false));
                assert!(compressibility.compresses(FILE), "a few holes in a file that compresses");
                compressibility.record(FILE, false);
                assert!(!compressibility.compresses(FILE));
                compressibility.record(FILE, true);
                assert!((0..100).all(|_| compressibility.should_try(FILE)));
                assert_eq!(compressibility.failures(FILE), Some(0));
                compressibility.forget(FILE);
                assert_eq!(compressibility.failures(FILE), None);
            },
            1,
        );
    }
}
