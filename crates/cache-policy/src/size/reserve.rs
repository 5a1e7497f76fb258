//! The memory that the store leaves to others. Pure.

use eke_model::units::{Bytes, MIB};

/// The machine's reserve: 1/16 of RAM, at least 32 MiB, but at most 1/8 of RAM. A machine of 124 MB keeps 15 MiB. Its kernel
/// reclaims at about 2 MiB; with 32 MiB of the 50 MiB available, nothing would be left for the store.
pub fn machine_reserve(total: Bytes) -> Bytes {
    reserve(total, 32 * MIB)
}

/// A group's reserve: 1/16 of its limit, at least 16 MiB, but at most 1/8 of the limit.
pub fn group_reserve(limit: Bytes) -> Bytes {
    reserve(limit, 16 * MIB)
}

fn reserve(of: Bytes, least: u64) -> Bytes {
    Bytes((of.0 / 16).max(least).min(of.0 / 8))
}
