//! Shared by the tests of a real mount: the mount itself, its processes, and trees that are compared.

#![allow(dead_code, reason = "no test binary uses all of it")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "test code")]

pub mod content;
pub mod mount;
pub mod server;
pub mod tree;

use std::time::Duration;

/// Longer than anything that a test waits for takes.
pub const LONG: Duration = Duration::from_secs(30);

/// The devices that a mount needs.
pub const NEEDS: [&str; 1] = ["/dev/fuse"];

/// Bytes that depend on their offset: never 0, as compressible as text, different for each `seed`.
pub fn pattern(seed: u8, offset: u64, len: usize) -> Vec<u8> {
    let byte = |at: u64| (at / 7 % 61 + at / 65_536 % 59 + u64::from(seed) % 61) as u8 + 1;
    (offset..offset + len as u64).map(byte).collect()
}
