//! What is kept of a program.

use std::time::Duration;

use eke_prefetch_model::file_set::FileSet;
use eke_prefetch_model::program::{Program, ProgramId};

/// A program, without its files.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Which.
    pub program: Program,
    /// Launches that were seen.
    pub launches: u32,
    /// Launches of which the files were learned.
    pub learned: u32,
    /// When it was started last, in seconds since 1970.
    pub last_seen_s: i64,
    /// How long the launch took that was learned last.
    pub took: Duration,
    /// Bytes that that launch had to read.
    pub cold_bytes: u64,
    /// How long the launch took that read most, and those bytes: a cold one, as far as one was seen.
    pub coldest: (Duration, u64),
    /// Launches, each fading with a half-life of 30 days.
    pub weight: f64,
}

impl Record {
    /// The program's number.
    pub fn id(&self) -> ProgramId {
        self.program.id()
    }
}

/// A program with its files.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// The program.
    pub record: Record,
    /// Its files, in order of first use, without those that have changed since. Device numbers ([`Stamp::dev`](eke_prefetch_model::Stamp)) that
    /// were learned before this boot are 0: they say nothing now.
    pub set: FileSet,
}

/// A launch that was seen and not learned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// Of which program.
    pub id: ProgramId,
    /// When, in seconds since 1970.
    pub at_s: i64,
}

/// What there was no room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// Files of the set: the last in order.
    pub files: usize,
    /// Other programs that went to make room.
    pub programs: usize,
}

/// SQLite's integers have 63 bits and a sign; what is no number to count with is kept bit by bit.
pub(super) fn bits(value: u64) -> i64 {
    value as i64
}

/// The other way.
pub(super) fn of_bits(value: i64) -> u64 {
    value as u64
}

/// What is a number to count with stops at the largest.
pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The other way; nothing is less than nothing.
pub(super) fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

pub(super) fn id_column(id: ProgramId) -> i64 {
    bits(id.0)
}

pub(super) fn id_of_column(value: i64) -> ProgramId {
    ProgramId(of_bits(value))
}
