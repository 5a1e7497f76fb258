//! A page cache over a compressed store, as one machine: what each way to divide the memory between them reads from the disk, and
//! how long that takes by a stated model.
//!
//! # Layout
//! - [`load`](mod@load): files and requests, sampled so that a cell takes milliseconds
//! - [`page_cache`]: the kernel's two lists, or plain LRU; [`store`]: the compressed store in several orders of eviction
//! - [`way`]: the ways to use both; [`product`]: the decisions of `eke-cache-policy`, driven by the model's clock; [`aside`]: the one whether the mount
//!   is of use
//! - [`replay`](mod@replay): one load, one way: which bytes come from where
//! - [`bound`]: what no way can beat
//! - [`time`]: disks and costs; [`queue`]: throughput and response times from the work of each request
//!
//! # What it knows
//! Whole files are read in order, in pieces of 64 KiB or an eighth of the file if that is more. Every piece compresses equally. A page of the page cache is
//! uncompressed, a piece of the store compressed; both take from the same memory. Files do not change. It does not know read-ahead
//! that is wasted, parts of files, writes, memory of programs, recompression, or how much faster neighbouring files are read.

pub mod aside;
pub mod bound;
pub mod list;
pub mod load;
pub mod page_cache;
pub mod product;
pub mod queue;
pub mod replay;
pub mod store;
pub mod time;
pub mod way;

pub use load::{Load, Popularity, Sizes};
pub use replay::{Reads, replay};
pub use time::Disk;
pub use way::Way;

use eke_model::units::Bytes;

/// The machine of a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// The memory for both tiers.
    pub memory: Bytes,
    /// How well the content compresses: 2.5 to 1.
    pub ratio: f64,
    /// The disk below.
    pub disk: Disk,
}

/// What a way reaches with the measured requests of a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Share of requests with at least one read from the disk, 0 to 1.
    pub misses: f64,
    /// Share of the requested bytes that came from the disk, 0 to 1.
    pub from_disk: f64,
    /// Bytes a second to all clients together.
    pub throughput: f64,
    /// The 99th percentile of response times in seconds; `None` for a bound.
    pub p99_s: Option<f64>,
}

/// Replays a load in one way, and queues it at processors and disk.
pub fn outcome(load: &Load, machine: &Machine, way: Way) -> Outcome {
    let reads = replay(load, machine, way);
    let served = queue::serve(&reads.works, &machine.disk);
    Outcome {
        misses: reads.missed as f64 / reads.works.len().max(1) as f64,
        from_disk: reads.disk_bytes as f64 / reads.bytes.max(1) as f64,
        throughput: reads.bytes as f64 / served.seconds.max(f64::MIN_POSITIVE),
        p99_s: eke_statistics::quantile(&served.response_s, 0.99),
    }
}
