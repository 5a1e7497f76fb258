//! The admission policy as the tier sees it.

use std::time::Duration;

use eke_cache_policy::admission::Admission;
use eke_cache_store::FileId;

/// Called in every read: cheap, and without waiting.
pub trait AdmissionPolicy: Send + Sync {
    /// True if a run of blocks, read from the backing file from `block` on, should be admitted to the store. Stored blocks
    /// are served in any case.
    fn admit(&self, file: FileId, block: u64) -> bool;

    /// Records a read of `bytes` from the backing file. `took` is the reader's time without waiting for a processor, divided
    /// by the number of concurrent reads: the disk's time for it.
    fn note_backing_read(&self, file: FileId, bytes: usize, took: Duration) {
        let _ = (file, bytes, took);
    }

    /// Records that `bytes` of the backing file came from the kernel's page cache, which says nothing about the disk.
    fn note_page_cache_read(&self, file: FileId, bytes: usize) {
        let _ = (file, bytes);
    }

    /// Records `bytes` decompressed from the store in `took`.
    fn note_hit(&self, file: FileId, bytes: usize, took: Duration) {
        let _ = (file, bytes, took);
    }

    /// Records that `blocks` blocks of any files were compressed in `took`, the time of a worker or a reader without waiting
    /// for a processor.
    fn note_compressed(&self, blocks: usize, took: Duration) {
        let _ = (blocks, took);
    }
}

/// Admits everything.
#[derive(Debug, Default, Clone, Copy)]
pub struct AdmitAll;

impl AdmissionPolicy for AdmitAll {
    fn admit(&self, _: FileId, _: u64) -> bool {
        true
    }
}

impl AdmissionPolicy for Admission {
    fn admit(&self, file: FileId, block: u64) -> bool {
        self.admit(file.hash(), block)
    }

    fn note_backing_read(&self, file: FileId, bytes: usize, took: Duration) {
        self.note_backing_read(file.hash(), bytes, took);
    }

    fn note_page_cache_read(&self, file: FileId, bytes: usize) {
        self.note_page_cache_read(file.hash(), bytes);
    }

    fn note_hit(&self, file: FileId, bytes: usize, took: Duration) {
        self.note_hit(file.hash(), bytes, took);
    }

    fn note_compressed(&self, blocks: usize, took: Duration) {
        self.note_compressed(blocks, took);
    }
}
