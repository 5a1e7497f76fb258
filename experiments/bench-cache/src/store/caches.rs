//! What is compared: eke's store, and quick_cache with the same codec and the same budget.

use std::sync::Arc;

use eke_cache_store::codec::{Codec, Compressed, Engine, Lz4};
use eke_cache_store::{Admitted, Key, Lookup, Scratch, Store, StoreSpec, WorkDone};
use eke_model::units::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache as QuickCache;

use super::Error;
use super::corpus::pays;

/// A cache of blocks that compresses them. Threads share it; each has a `Scratch` of its own.
pub(super) trait Cache: Sync + Sized {
    type Scratch: Send;

    /// Empty, for `blocks` bytes a block, with `limit` bytes of memory, for so many threads.
    fn new(block: usize, limit: Bytes, threads: usize) -> Result<Self, Error>;
    fn scratch(&self) -> Result<Self::Scratch, Error>;
    /// The block into `out`; `None` if it is not held.
    fn get(&self, scratch: &mut Self::Scratch, key: Key, out: &mut [u8]) -> Option<usize>;
    /// Takes a block in; false: it was not taken.
    fn put(&self, scratch: &mut Self::Scratch, key: Key, block: &[u8]) -> bool;
    /// The file's block was written: what is held of it goes, and this comes in.
    fn renew(&self, scratch: &mut Self::Scratch, key: Key, block: &[u8]) -> bool;
    /// Bytes of files held, and by its own account the memory for them.
    fn held(&self) -> (u64, u64);
}

/// eke's store.
pub(super) struct Ours(pub Store);

/// The share of blocks that is enough to speak of the dense codec's figures, and the rounds that it may take.
const ENOUGH_DENSE: f64 = 0.85;
const MOST_ROUNDS: usize = 8;

impl Ours {
    /// Rounds of packing again by the dense codec; the share of blocks that it made denser.
    ///
    /// Only what stays is packed again: the limit is made a little smaller first, again and again, so that the policy sorts
    /// what was asked for from what was not.
    ///
    /// # Errors
    /// There is no memory for the worker.
    pub fn pack_again(&self) -> Result<f64, Error> {
        let mut worker = self.0.worker(0).map_err(Error::of_cache)?;
        let mut share = 0.0;
        for _ in 0..MOST_ROUNDS {
            self.0.resize(self.0.stats().held.scaled(0.95));
            self.0.begin_round();
            while worker.step() != WorkDone::Nothing {}
            let stats = self.0.stats();
            share = stats.recompressed as f64 / (stats.recompressed + stats.fast).max(1) as f64;
            if share >= ENOUGH_DENSE {
                break;
            }
        }
        Ok(share)
    }
}

impl Cache for Ours {
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

    fn renew(&self, scratch: &mut Scratch, key: Key, block: &[u8]) -> bool {
        let ticket = self.0.drop_block(key);
        self.0.admit(scratch, ticket, block) == Admitted::Stored
    }

    fn held(&self) -> (u64, u64) {
        let stats = self.0.stats();
        (stats.raw.0, stats.held.0)
    }
}

/// A block in the peer.
#[derive(Clone)]
pub(super) struct Held {
    /// Of the file's.
    raw_len: usize,
    is_packed: bool,
    bytes: Arc<[u8]>,
}

/// A block weighs what it is packed to.
#[derive(Clone)]
pub(super) struct PackedBytes;

impl Weighter<Key, Held> for PackedBytes {
    fn weight(&self, _key: &Key, held: &Held) -> u64 {
        // What weighs nothing is never evicted there.
        held.bytes.len().max(1) as u64
    }
}

/// quick_cache with its defaults.
pub(super) struct Quick(QuickCache<Key, Held, PackedBytes>);

/// One thread's codec.
pub(super) struct Packing {
    engine: Box<dyn Engine>,
    packed: Compressed,
}

impl Packing {
    pub fn new(block: usize) -> Result<Self, Error> {
        let packed = Compressed::with_room(Lz4.bound(block), 1).map_err(Error::of_cache)?;
        Ok(Self { engine: Lz4.engine().map_err(Error::of_cache)?, packed })
    }

    /// `None`: it could not be packed.
    pub fn pack(&mut self, block: &[u8]) -> Option<&[u8]> {
        self.packed.clear();
        self.engine.compress_batch(&[block], &mut self.packed);
        self.packed.get(0)
    }

    pub fn unpack(&mut self, packed: &[u8], out: &mut [u8]) -> bool {
        self.engine.decompress(packed, out).is_ok()
    }
}

impl Cache for Quick {
    type Scratch = Packing;

    fn new(block: usize, limit: Bytes, _threads: usize) -> Result<Self, Error> {
        // It wants to know how many items there will be: as many as fit if they are packed 2 to 1.
        let items = usize::try_from(limit.0).unwrap_or(usize::MAX) / (block / 2);
        Ok(Self(QuickCache::with_weighter(items, limit.0, PackedBytes)))
    }

    fn scratch(&self) -> Result<Packing, Error> {
        Packing::new(256 << 10)
    }

    fn get(&self, scratch: &mut Packing, key: Key, out: &mut [u8]) -> Option<usize> {
        let held = self.0.get(&key)?;
        let out = out.get_mut(..held.raw_len)?;
        if !held.is_packed {
            out.copy_from_slice(&held.bytes);
            return Some(held.raw_len);
        }
        scratch.unpack(&held.bytes, out).then_some(held.raw_len)
    }

    fn put(&self, scratch: &mut Packing, key: Key, block: &[u8]) -> bool {
        let packed = scratch.pack(block).filter(|packed| pays(block.len(), packed.len()));
        let is_packed = packed.is_some();
        let bytes = packed.unwrap_or(block).into();
        self.0.insert(key, Held { raw_len: block.len(), is_packed, bytes });
        true
    }

    fn renew(&self, scratch: &mut Packing, key: Key, block: &[u8]) -> bool {
        self.put(scratch, key, block)
    }

    fn held(&self) -> (u64, u64) {
        (self.0.iter().map(|(_, held)| held.raw_len as u64).sum(), self.0.weight())
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

    fn gives_back_what_it_took<C: Cache>() {
        let cache = C::new(BLOCK, Bytes::mib(8), 2).unwrap();
        let (mut scratch, mut out) = (cache.scratch().unwrap(), vec![0; BLOCK]);
        let key = |n| Key::new(FileId(1), n);
        for n in 0..9 {
            assert!(cache.put(&mut scratch, key(u64::from(n)), &text(n)));
        }
        assert!(cache.renew(&mut scratch, key(3), &text(99)));
        for n in 0..9 {
            assert_eq!(cache.get(&mut scratch, key(u64::from(n)), &mut out), Some(BLOCK));
            assert!(out == text(if n == 3 { 99 } else { n }), "{n}");
        }
        assert_eq!(cache.get(&mut scratch, key(10), &mut out), None);
        let (raw, memory) = cache.held();
        assert_eq!(raw, 9 * BLOCK as u64);
        assert!(memory > 0);
    }

    #[test]
    fn both_give_back_what_they_took() {
        gives_back_what_it_took::<Ours>();
        gives_back_what_it_took::<Quick>();
    }
}
