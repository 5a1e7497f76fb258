//! The stored data of a program.

use std::time::Duration;

use eke_prefetch_model::file_set::FileSet;
use eke_prefetch_model::program::{Program, ProgramId};

/// A program without its files.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The program.
    pub program: Program,
    /// All its launches.
    pub launches: u32,
    /// Launches whose files were learned.
    pub learned: u32,
    /// Its last start, in seconds since 1970.
    pub last_seen_s: i64,
    /// The duration of its last learned launch.
    pub took: Duration,
    /// Bytes that this launch read from the disk.
    pub cold_bytes: u64,
    /// Duration and bytes of the learned launch that read most: a cold one, if any was.
    pub coldest: (Duration, u64),
    /// Its launches, each fading with a half-life of 30 days.
    pub weight: f64,
}

impl Record {
    /// The program's id.
    pub fn id(&self) -> ProgramId {
        self.program.id()
    }
}

/// A program with its files.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedProgram {
    /// The program.
    pub record: Record,
    /// Its files in order of first use, without those that have changed since. Device numbers ([`Stamp::dev`](eke_prefetch_model::Stamp)) from
    /// earlier boots are 0, because they are meaningless now.
    pub set: FileSet,
    /// The accounts whose launches were learned: the last sixteen. Empty if an earlier eke learned it.
    pub users: Vec<u32>,
    /// The number of files of packages in it that another program has seen replaced: their pages are void, and not in `set`.
    pub replaced: usize,
}

impl LearnedProgram {
    /// The same without what concerns only other accounts, once launches of this account are learned.
    #[must_use]
    pub fn for_account(mut self, account: u32) -> Self {
        if self.users.contains(&account) {
            self.set.keep_for(account);
        }
        self
    }
}

/// A launch that was not learned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnlearnedLaunch {
    /// Its program.
    pub id: ProgramId,
    /// Seconds since 1970.
    pub at_s: i64,
}

/// What exceeded the bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// Files of the set that were not stored: those with the least weight.
    pub files: usize,
    /// Other programs that were deleted to make room.
    pub programs: usize,
}

/// SQLite's integers are signed; identifiers are stored bit by bit.
pub(super) fn bits(value: u64) -> i64 {
    value as i64
}

/// The inverse of [`bits`].
pub(super) fn of_bits(value: i64) -> u64 {
    value as u64
}

/// Quantities saturate at the largest signed integer.
pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The inverse of [`signed`]; negative values become 0.
pub(super) fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

pub(super) fn id_column(id: ProgramId) -> i64 {
    bits(id.0)
}

pub(super) fn id_of_column(value: i64) -> ProgramId {
    ProgramId(of_bits(value))
}
