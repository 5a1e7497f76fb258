//! Evicted blocks on a faster disk: what leaves the store's memory goes there, still compressed, and comes back from there.
//!
//! # Layout
//! - [`decide`]: which blocks are worth a write, when a read is; the default sizes
//! - [`day`]: the bytes of a day, and the page that remembers them
//! - `ring`: segments, written one after another; `index`: where each block is
//! - [`record`]: a block in a segment, as bytes; [`saved`]: what outlives an unmount, as bytes
//! - `state`: all that is under the lock; [`spill`]: evictions, reads, the thread that writes
//! - [`medium`]: the file
//!
//! # The way of a block
//! ```text
//! evicted ── worth it? ── segment in memory ── full: sealed ── the thread writes it ── slot of the ring
//!                                │                  │                                        │
//! read  ◄────────────────────────┴──────────────────┴── checked: segment, key, sum ◄─────────┘
//! ```
//!
//! # Invariants
//! - A block is served only if the index has it, and the bytes have its key, its segment's number and its checksum.
//! - The index loses a block whenever the store drops it (see `eke_cache_store::EvictionListener`).
//! - Nobody waits for the disk but the thread that writes, and readers of a block that is there.
//! - What goes wrong costs the block, and is counted.
//!
//! # Design
//! - *Segments* are 1 MiB, one in memory and one on its way. They follow each other in one file, so the disk sees one long sequential
//!   write, however small they are; larger ones would only take more memory.
//! - *The oldest segment goes as a whole.* Nothing is moved and nothing is written twice for the sake of room.
//! - *Nothing is trusted after a crash.* The index is written at a clean unmount and removed before it is used again. Without it the
//!   spill begins empty.

pub mod day;
pub mod decide;
mod index;
pub mod medium;
mod place;
pub mod record;
mod ring;
pub mod saved;
pub mod spill;
mod state;
mod stats;

pub use medium::{DiskFile, Medium, Room};
pub use place::Place;
pub use saved::{Saved, SavedFile};
pub use spill::{Spill, SpillOptions, Spilled};
pub use stats::Stats;

/// The bytes of a segment.
pub const SEGMENT: usize = 1 << 20;
