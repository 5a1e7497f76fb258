//! Benchmarks of the compressed page cache without a slow disk.
//!
//! # Layout
//! - [`store`]: the block store in this process, compared with a cache that programs use today
//! - [`reads`]: reads through a cache's mount, compared with reads of the files themselves
//! - [`trace`]: hit rates by eviction policy, on traces

pub mod reads;
pub mod store;
pub mod trace;
