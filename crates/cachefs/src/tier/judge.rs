//! Who says whether blocks of a file are worth taking in, and is told what everything costs.

use std::time::Duration;

use eke_cache_policy::admission::Admission;
use eke_cache_store::FileId;

/// Asked and told on the way of each read: cheap, and without waiting.
pub trait Judge: Send + Sync {
    /// Shall a run of blocks of this file, read from the backing file from `block` on, be taken into the store? What is held is served all
    /// the same.
    fn admit(&self, file: FileId, block: u64) -> bool;

    /// So many bytes were read from the backing file at once. `took` is the reader's time, without what it waited for a processor, divided
    /// by how many read at once: what the disk took for it.
    fn note_backing_read(&self, file: FileId, bytes: usize, took: Duration) {
        let _ = (file, bytes, took);
    }

    /// So many bytes were decompressed out of the store, in so much time.
    fn note_hit(&self, file: FileId, bytes: usize, took: Duration) {
        let _ = (file, bytes, took);
    }

    /// So many blocks, of any files, were compressed, in so much time of a worker's or of a reader's, without waiting for a
    /// processor.
    fn note_compressed(&self, blocks: usize, took: Duration) {
        let _ = (blocks, took);
    }
}

/// Takes everything in.
#[derive(Debug, Default, Clone, Copy)]
pub struct Always;

impl Judge for Always {
    fn admit(&self, _: FileId, _: u64) -> bool {
        true
    }
}

impl Judge for Admission {
    fn admit(&self, file: FileId, block: u64) -> bool {
        self.admit(file.hash(), block)
    }

    fn note_backing_read(&self, file: FileId, bytes: usize, took: Duration) {
        self.note_backing_read(file.hash(), bytes, took);
    }

    fn note_hit(&self, file: FileId, bytes: usize, took: Duration) {
        self.note_hit(file.hash(), bytes, took);
    }

    fn note_compressed(&self, blocks: usize, took: Duration) {
        self.note_compressed(blocks, took);
    }
}
