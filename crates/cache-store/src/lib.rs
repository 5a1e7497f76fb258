//! The block store of the compressed page cache. It has no files, no clock and no threads of its own.
//!
//! # Layout
//! - [`store`]: the store: lookups, admissions, drops, resizing; the order of locks
//! - [`work`]: workers that compress queued blocks, and recompress blocks that stay
//! - [`epoch`](Ticket): tickets, which keep out blocks that changed on their way in
//! - `evicted`: what becomes of blocks that leave; `readmit`: their return
//! - `shard`: a share of the blocks, plain data under one lock; `pin`: a block that is read without the lock
//! - `arena`: memory from the kernel, and back to it
//! - [`policy`]: the eviction policy
//! - [`codec`]: compression in batches
//! - `queue`: blocks that wait for compression; `compressibility`: files that do not compress; `sync`: the locks, or shuttle's
//!
//! # Invariants
//! - A hit is byte for byte the content that was last admitted for the key by a ticket that no drop has voided since.
//! - No lock is held while bytes are compressed, decompressed, summed or copied into a queue. A listener copies evicted blocks under the lock.
//! - After a call has returned, memory does not exceed the limit, except for blocks that are being read.
//! - Lack of memory drops blocks. It neither aborts the process nor fails a read.
//!
//! # Example
//! ```
//! use eke_cache_store::{FileId, Key, Lookup, Store, StoreSpec};
//! use eke_model::units::Bytes;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = Store::new(StoreSpec::for_cpus(Bytes::mib(64), 2))?;
//! let (mut scratch, mut block) = (store.scratch()?, vec![0; 64 << 10]);
//! let key = Key::new(FileId(12), 0);
//! if let Lookup::Miss(ticket) = store.get(&mut scratch, key, &mut block) {
//!     let read = b"what the disk has ".repeat(1000);
//!     store.admit(&mut scratch, ticket, &read);
//! }
//! assert_eq!(store.get(&mut scratch, key, &mut block), Lookup::Hit(18_000));
//! # Ok(())
//! # }
//! ```
//!
//! # The way of a block
//! ```text
//! get ── miss: ticket ── caller reads the file ──┬─ admit ──────────────────────┬─ LZ4 ─┐
//!                                                └─ submit ── queue ── worker ──┘       │
//!                                                                                       ▼
//!     evicted ◄── S3-FIFO over clusters ◄──────────── shard: index, slots, arena ◄── is the ticket current?
//!                                                          │         ▲
//!                                       stays: worker ── zstd ── same address, fewer bytes
//! ```
//!
//! # Design
//! - *Shards* are selected by the hash of file and stretch (16 blocks), with one lock each. Compression, decompression,
//!   checksums and copies run without a lock. A reader pins the bytes under the lock and reads them outside; pinned bytes are
//!   not moved, overwritten or released.
//! - *Tickets.* A miss returns a ticket with the epochs of block and file. A drop raises an epoch before it searches for the
//!   block. A block is admitted, under the lock, only by a current ticket. So a block that changed while it was read or
//!   compressed stays out.
//! - *Memory* is slabs of 512 KiB from mmap(2), filled first-fit. Blocks can be moved, so a smaller limit drains slabs, and the
//!   kernel has them back before `resize` returns. The limit covers slabs and tables as the kernel counts them.
//! - *Eviction* is S3-FIFO, weighted in compressed bytes. It orders clusters: blocks of one stretch that were admitted together
//!   stay and leave together, and one pass over them is one request. For single blocks, a second request is chance behind a
//!   page cache, and every hole costs the next reader a seek.
//! - *Codecs* take batches: first LZ4; later zstd, in rounds that the caller starts, for blocks that stay.
//! - The unit tests' locks are shuttle's, so whole stores run under random schedules. Tests with real threads are in `tests/`.

mod arena;
mod block;
pub mod codec;
mod compressibility;
mod copied;
mod epoch;
mod error;
mod evicted;
mod key;
mod pin;
pub mod policy;
mod queue;
mod readmit;
mod scratch;
mod shard;
mod spec;
mod stats;
pub mod store;
mod sync;
pub mod work;

pub use block::Form;
pub use copied::CopiedBlock;
pub use epoch::Ticket;
pub use error::{Error, OutOfMemory};
pub use evicted::{CompressedBlock, EvictionListener};
pub use key::{FileId, Key};
pub use pin::Resident;
pub use policy::{Heat, S3Fifo};
pub use scratch::Scratch;
pub use spec::{Incompressible, StoreSpec};
pub use stats::Stats;
pub use store::{Admitted, Lookup, Store};
pub use work::{WorkDone, Worker};

#[cfg(test)]
mod schedules;
#[cfg(test)]
mod schedules_evicted;
