//! The heart of the compressed page cache: the block store, a library that knows no files, no clock and no threads of its own.
//!
//! # Layout
//! - [`store`]: the store: lookups, admissions, drops, resizing; which locks are taken when
//! - [`work`]: workers that compress what waits, and recompress what stays
//! - [`epoch`](Ticket): how a block that changed on its way in is kept out
//! - `shard`: a share of the blocks: plain data under one lock; `pin`: a block that is read without it
//! - `arena`: memory from the kernel, and back to it
//! - [`policy`]: which block goes
//! - [`codec`]: compression in batches
//! - `queue`: blocks that wait; `verdict`: files that do not compress; `sync`: the locks, or shuttle's
//!
//! # Invariants
//! - A hit is, to the byte, what was admitted last for the key by a ticket that no drop has voided since.
//! - No lock is held while bytes are compressed, decompressed, summed or copied into a queue.
//! - Memory held never exceeds the limit once a call has returned, but for what is being read at that moment.
//! - Lack of memory drops blocks. Nothing here aborts the process or fails a read for it.
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
//! # Design
//! - *Shards* by the hash of file and stretch of 16 blocks, one lock each. Compression, decompression, checksums and copies run without a lock. A reader
//!   pins the bytes under the lock and reads them outside; pinned bytes are not moved, overwritten or released.
//! - *Tickets.* A miss returns a ticket with the epochs of block and file. A drop raises an epoch before it looks for the block. A block enters, under the
//!   lock, only by a current ticket. So a block that changed while it was read or compressed stays out.
//! - *Memory* is slabs of 512 KiB from mmap, filled first-fit. Blocks can be moved, so a smaller limit drains slabs, and the kernel has them back before
//!   `resize` returns. The limit covers slabs and tables as the kernel counts them.
//! - *Eviction* is S3-FIFO, weighed in compressed bytes. It orders clusters: blocks of one stretch of a file that entered together stay and leave
//!   together, and one pass over them is one request. Block by block, a second request is chance behind a page cache, and every hole costs the next
//!   reader a seek.
//! - *Codecs* take batches: LZ4 first; later zstd, in rounds that the caller starts, for blocks that stay.
//! - The unit tests' locks are shuttle's, so whole stores run under random schedules. Real threads are in `tests/`.

mod arena;
mod block;
pub mod codec;
mod epoch;
mod error;
mod key;
mod pin;
pub mod policy;
mod queue;
mod scratch;
mod shard;
mod spec;
mod stats;
pub mod store;
mod sync;
mod verdict;
pub mod work;

pub use epoch::Ticket;
pub use error::{Error, OutOfMemory};
pub use key::{FileId, Key};
pub use pin::Resident;
pub use policy::S3Fifo;
pub use scratch::Scratch;
pub use spec::{Incompressible, StoreSpec};
pub use stats::Stats;
pub use store::{Admitted, Lookup, Store};
pub use work::{Did, Worker};

#[cfg(test)]
mod schedules;
