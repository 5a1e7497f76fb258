//! A request.

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The block.
    pub key: u64,
    /// Its compressed size in bytes: its weight in the cache.
    pub weight: u32,
}
