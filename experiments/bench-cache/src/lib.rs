//! Benchmarks of the compressed page cache without a slow disk.
//!
//! # Layout
//! - [`store`]: the block store in this process, compared with a cache that programs use today
//! - [`reads`]: reads through a cache's mount, compared with reads of the files themselves
//! - [`names`]: names and attributes through a cache's mount, compared with the files themselves
//! - [`warm`]: what is read again after an unmount, on a slow disk
//! - [`trace`]: hit rates by eviction policy, on traces
//! - [`tiers`]: page cache and store together by a model, over a grid of cells
//!
//! ```text
//! store, trace:  cases × variants ─> measured or replayed in this process ─> rows ─> Report
//! reads, names:  files on this machine's disk · `eke cache mount` over them ─> the same work on both ─> rows ─> Report
//! ```
//!
//! `store` fills caches with blocks of files and times threads; all variants take part in each round, which begins with another variant.
//! Memory is the kernel's count for this process, and each cache's own account. `trace` replays requests through the store's policies and
//! quick_cache's, behind an LRU page cache: rates, not times. `tiers` adds times by a model. They change nothing of the machine and need no root. `reads` and `names` make a
//! directory and a mount of the user's own; `warm` needs root, for a slow disk.

mod cache_mount;
pub mod names;
pub mod reads;
pub mod store;
pub mod tiers;
pub mod trace;
pub mod warm;
