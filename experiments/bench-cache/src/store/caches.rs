//! The caches that are compared: eke's store, and quick_cache with the same codec and the same budget.

use std::sync::Arc;

use eke_cache_store::codec::{Codec, Compressed, Engine, Lz4};
use eke_cache_store::{Admitted, Key, Lookup, Scratch, Store, StoreSpec, WorkDone};
use eke_model::units::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache as QuickCache;

use super::Error;
use super::corpus::is_worth_keeping;

/// A cache of blocks that compresses them. Threads share it; each has its own `Scratch`.
pub(super) trait Cache: Sync + Sized {
    type Scratch: Send;

    /// An empty cache for blocks of `block` bytes, with `limit` bytes of memory, for so many threads.
    fn new(block: usize, limit: Bytes, threads: usize) -> Result<Self, Error>;
    fn scratch(&self) -> Result<Self::Scratch, Error>;
    /// Reads a block into `out`; `None` if it is not cached.
    fn get(&self, scratch: &mut Self::Scratch, key: Key, out: &mut [u8]) -> Option<usize>;
    /// Inserts a block. Returns whether the cache accepted it.
    fn put(&self, scratch: &mut Self::Scratch, key: Key, block: &[u8]) -> bool;
    /// Replaces a block that was written.
    fn replace(&self, scratch: &mut Self::Scratch, key: Key, block: &[u8]) -> bool;
    /// Uncompressed bytes in the cache, and the memory for them by its own account.
    fn sizes(&self) -> (u64, u64);
}

/// eke's store.
pub(super) struct EkeCache(pub Store);

/// The share of recompressed blocks that is enough to measure.
const ENOUGH_RECOMPRESSED: f64 = 0.85;
/// The most rounds to reach it.
const MOST_ROUNDS: usize = 8;

impl EkeCache {
    /// Recompresses blocks in rounds with the high-ratio codec. Returns the share of recompressed blocks.
    ///
    /// The store recompresses only blocks that stay. So each round first makes the limit a little smaller, and the policy separates
    /// requested blocks from others.
    ///
    /// # Errors
    /// There is no memory for the worker.
    pub fn recompress(&self) -> Result<f64, Error> {
        let mut worker = self.0.worker(0).map_err(Error::of_cache)?;
        let mut share = 0.0;
        for _ in 0..MOST_ROUNDS {
            self.0.resize(self.0.stats().held.scaled(0.95));
            self.0.begin_round();
            while worker.step() != WorkDone::Nothing {}
            let stats = self.0.stats();
            share = stats.recompressed as f64 / (stats.recompressed + stats.fast).max(1) as f64;
            if share >= ENOUGH_RECOMPRESSED {
                break;
            }
        }
        Ok(share)
    }
}

impl Cache for EkeCache {
    type Scratch = Scratch;

    fn new(block: usize, limit: Bytes, threads: usize) -> Result<Self, Error> {
        let spec = StoreSpec { block_size: block, ..StoreSpec::for_cpus(limit, threads) };
        Ok(Self(Store::new(spec).map_err(Error::of_cache)?))
    }

    fn scratch(&self) -> Result<Scratch, Error> {
        self.0.scratch().map_err(Error::of_cache)
    }

    fn get(&self, scratch: &mut Scratch, key: Key, out: &mut [u8]) -> Option<usize> {
        match self.0.get(scratch, key, out) {
            Lookup::Hit(len) => Some(len),
            Lookup::Miss(_) | Lookup::Corrupted(_) => None,
        }
    }

    fn put(&self, scratch: &mut Scratch, key: Key, block: &[u8]) -> bool {
        self.0.admit(scratch, self.0.ticket(key), block) == Admitted::Stored
    }

    fn replace(&self, scratch: &mut Scratch, key: Key, block: &[u8]) -> bool {
        let ticket = self.0.drop_block(key);
        self.0.admit(scratch, ticket, block) == Admitted::Stored
    }

    fn sizes(&self) -> (u64, u64) {
        let stats = self.0.stats();
        (stats.raw.0, stats.held.0)
    }
}

/// A block in quick_cache.
#[derive(Clone)]
pub(super) struct PeerBlock {
    /// The uncompressed length.
    raw_len: usize,
    is_compressed: bool,
    bytes: Arc<[u8]>,
}

/// Weighs a block by its compressed bytes.
#[derive(Clone)]
pub(super) struct CompressedBytes;

impl Weighter<Key, PeerBlock> for CompressedBytes {
    fn weight(&self, _key: &Key, block: &PeerBlock) -> u64 {
        // quick_cache never evicts blocks of weight 0.
        block.bytes.len().max(1) as u64
    }
}

/// quick_cache with its defaults.
pub(super) struct Quick(QuickCache<Key, PeerBlock, CompressedBytes>);

/// One thread's codec.
pub(super) struct ThreadCodec {
    engine: Box<dyn Engine>,
    compressed: Compressed,
}

impl ThreadCodec {
    pub fn new(block: usize) -> Result<Self, Error> {
        let compressed = Compressed::with_room(Lz4.bound(block), 1).map_err(Error::of_cache)?;
        Ok(Self { engine: Lz4.engine().map_err(Error::of_cache)?, compressed })
    }

    /// Compresses a block; `None` if that fails.
    pub fn compress(&mut self, block: &[u8]) -> Option<&[u8]> {
        self.compressed.clear();
        self.engine.compress_batch(&[block], &mut self.compressed);
        self.compressed.get(0)
    }

    pub fn decompress(&mut self, compressed: &[u8], out: &mut [u8]) -> bool {
        self.engine.decompress(compressed, out).is_ok()
    }
}

impl Cache for Quick {
    type Scratch = ThreadCodec;

    fn new(block: usize, limit: Bytes, _threads: usize) -> Result<Self, Error> {
        // quick_cache needs an estimate of the number of items: as many as fit at a ratio of 2 to 1.
        let items = usize::try_from(limit.0).unwrap_or(usize::MAX) / (block / 2);
        Ok(Self(QuickCache::with_weighter(items, limit.0, CompressedBytes)))
    }

    fn scratch(&self) -> Result<ThreadCodec, Error> {
        ThreadCodec::new(256 << 10)
    }

    fn get(&self, scratch: &mut ThreadCodec, key: Key, out: &mut [u8]) -> Option<usize> {
        let block = self.0.get(&key)?;
        let out = out.get_mut(..block.raw_len)?;
        if !block.is_compressed {
            out.copy_from_slice(&block.bytes);
            return Some(block.raw_len);
        }
        scratch.decompress(&block.bytes, out).then_some(block.raw_len)
    }

    fn put(&self, scratch: &mut ThreadCodec, key: Key, block: &[u8]) -> bool {
        let compressed = scratch.compress(block).filter(|c| is_worth_keeping(block.len(), c.len()));
        let is_compressed = compressed.is_some();
        let bytes = compressed.unwrap_or(block).into();
        self.0.insert(key, PeerBlock { raw_len: block.len(), is_compressed, bytes });
        true
    }

    fn replace(&self, scratch: &mut ThreadCodec, key: Key, block: &[u8]) -> bool {
        self.put(scratch, key, block)
    }

    fn sizes(&self) -> (u64, u64) {
        (self.0.iter().map(|(_, block)| block.raw_len as u64).sum(), self.0.weight())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eke_cache_store::FileId;

    const BLOCK: usize = 16 << 10;

    fn text(n: u8) -> Vec<u8> {
        let mut block = b"to eke out: to make a small supply last. ".repeat(500);
        block.truncate(BLOCK);
        block[7] = n;
        block
    }

    fn returns_what_was_inserted<C: Cache>() {
        let cache = C::new(BLOCK, Bytes::mib(8), 2).unwrap();
        let (mut scratch, mut out) = (cache.scratch().unwrap(), vec![0; BLOCK]);
        let key = |n| Key::new(FileId(1), n);
        for n in 0..9 {
            assert!(cache.put(&mut scratch, key(u64::from(n)), &text(n)));
        }
        assert!(cache.replace(&mut scratch, key(3), &text(99)));
        for n in 0..9 {
            assert_eq!(cache.get(&mut scratch, key(u64::from(n)), &mut out), Some(BLOCK));
            assert!(out == text(if n == 3 { 99 } else { n }), "{n}");
        }
        assert_eq!(cache.get(&mut scratch, key(10), &mut out), None);
        let (raw, memory) = cache.sizes();
        assert_eq!(raw, 9 * BLOCK as u64);
        assert!(memory > 0);
    }

    #[test]
    fn both_return_what_was_inserted() {
        returns_what_was_inserted::<EkeCache>();
        returns_what_was_inserted::<Quick>();
    }
}
