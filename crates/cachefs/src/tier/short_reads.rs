//! Short reads anywhere in a file, as of a database: the whole block, or the bytes alone?
//!
//! On a disk that seeks a block takes hardly longer than a page. On an SD card, over a network and on many SSDs it takes several times as long,
//! and of a large file most blocks leave the store before another of their pages is requested. So there the first such read of a block
//! reads its bytes alone, and the second one the block. That is at most one short read more than always the block.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use eke_cache_store::Key;

use super::report::Average;

/// A read this short is a page or a few, and at most a quarter of a block.
const SHORT: usize = 16 << 10;
/// A block takes this many times as long as a short read, or more: the bytes alone are read.
const PAYS: f64 = 2.0;
/// One read in so many is done the other way, so that both times stay known.
const LEARN_EVERY: u32 = 32;

/// How long both take, and which blocks were requested once.
#[derive(Debug)]
pub(super) struct ShortReads {
    short: Average,
    block: Average,
    count: AtomicU32,
    /// A mark of the last block with this place.
    once: Box<[AtomicU32]>,
}

impl ShortReads {
    /// Remembers about `blocks` blocks, as many as the store may hold.
    pub fn new(blocks: u64) -> Self {
        let places = blocks.clamp(1 << 10, 1 << 18).next_power_of_two();
        Self {
            short: Average::default(),
            block: Average::default(),
            count: AtomicU32::new(0),
            once: (0..places).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// True if a read of `len` bytes is short beside a block of `block_size`.
    pub fn is_short(len: usize, block_size: usize) -> bool {
        len <= SHORT.min(block_size / 4)
    }

    /// Records that a read of the disk of `bytes` bytes took so long.
    pub fn note(&self, bytes: usize, block_size: usize, took: Duration) {
        if Self::is_short(bytes, block_size) {
            self.short.note(1, took);
        } else if bytes <= block_size {
            self.block.note(1, took);
        }
    }

    /// True if the bytes alone should be read of this block, which is missing. Counts as a request for it.
    pub fn suffices(&self, key: Key) -> bool {
        let is_first = self.is_first(key);
        let (short_us, block_us) = (self.short.us(), self.block.us());
        let learns = self.count.fetch_add(1, Relaxed) % LEARN_EVERY == LEARN_EVERY - 1;
        match (short_us > 0.0, block_us > 0.0) {
            (_, false) => false,
            (false, true) => is_first,
            (true, true) => is_first && ((block_us >= PAYS * short_us) != learns),
        }
    }

    /// True if this block was not requested since it was last read, as far as that is remembered.
    fn is_first(&self, key: Key) -> bool {
        let hash = key.hash();
        let (place, mark) = (hash as usize & (self.once.len() - 1), (hash >> 32) as u32 | 1);
        let seen = self.once[place].swap(mark, Relaxed) == mark;
        if seen {
            self.once[place].store(0, Relaxed);
        }
        !seen
    }

    /// In bytes.
    pub fn memory(&self) -> usize {
        size_of_val(&*self.once)
    }
}

#[cfg(test)]
mod tests {
    use eke_cache_store::FileId;

    use super::*;

    const BLOCK: usize = 64 << 10;

    fn disk(short_us: u64, block_us: u64) -> ShortReads {
        let reads = ShortReads::new(4096);
        reads.note(4096, BLOCK, Duration::from_micros(short_us));
        reads.note(BLOCK, BLOCK, Duration::from_micros(block_us));
        reads
    }

    fn key(block: u64) -> Key {
        Key::new(FileId(7), block)
    }

    #[test]
    fn on_a_card_the_first_request_of_a_block_reads_its_bytes_alone_and_the_second_the_block() {
        let card = disk(500, 3700);
        assert_eq!([5, 6, 5, 6, 5].map(|block| card.suffices(key(block))), [true, true, false, false, true]);
    }

    #[test]
    fn on_a_disk_that_seeks_the_block_is_read() {
        let seeks = disk(8000, 9000);
        let short = (0..310).filter(|block| seeks.suffices(key(*block))).count();
        assert_eq!(short, 9, "now and then one is short, to learn how long that takes");
    }

    #[test]
    fn what_is_unknown_is_learned_first() {
        let reads = ShortReads::new(4096);
        assert!(!reads.suffices(key(1)), "how long a block takes");
        reads.note(BLOCK, BLOCK, Duration::from_micros(900));
        assert!(reads.suffices(key(2)), "how long a short read takes");
    }

    #[test]
    fn what_is_short_depends_on_the_block() {
        let short = |len, block| ShortReads::is_short(len, block);
        assert!(short(4096, BLOCK) && short(16 << 10, BLOCK) && !short(17 << 10, BLOCK));
        assert!(short(1024, 4096) && !short(4096, 4096));
    }
}
