//! What the compressed page cache does, without a slow disk.
//!
//! # Layout
//! - [`store`]: the block store in this process, beside a cache that programs use today
//! - [`reads`]: reads through a cache's mount, beside those of the files themselves
//! - [`trace`]: hit rates by eviction policy, on traces

pub mod reads;
pub mod store;
pub mod trace;
