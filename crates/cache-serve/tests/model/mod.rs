//! What the tests of a real mount share: the mount itself, operations on a tree, and what a tree looks like.

#![allow(dead_code, reason = "not every test uses all of it")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "test code")]

pub mod mount;
pub mod tools;
pub mod tree;

use std::time::Duration;

/// Longer than anything that a test waits for may take.
pub const LONG: Duration = Duration::from_secs(30);

/// Bytes that tell where they are: never 0, compressible as text is, different for each `seed`.
pub fn pattern(seed: u8, offset: u64, len: usize) -> Vec<u8> {
    let byte = |at: u64| (at / 7 % 61 + at / 65_536 % 59 + u64::from(seed) % 61) as u8 + 1;
    (offset..offset + len as u64).map(byte).collect()
}
