//! Counters of a spill.

use eke_model::units::Bytes;

/// A spill at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// The most bytes on the disk.
    pub limit: Bytes,
    /// Bytes of the segments on the disk.
    pub held: Bytes,
    /// The most bytes that are written in a day.
    pub day_limit: Bytes,
    /// Bytes written on this day.
    pub day_written: Bytes,
    /// Memory of the tables and segments.
    pub memory: Bytes,
    /// Blocks that can be read.
    pub blocks: u64,
    /// Of these, blocks that an earlier mount left.
    pub restored: u64,
    /// Blocks that were read.
    pub hits: u64,
    /// Blocks put into a segment.
    pub written: u64,
    /// Bytes of segments written to the disk.
    pub bytes_written: u64,
    /// Evicted blocks that were not requested again since they were admitted.
    pub unrequested: u64,
    /// Evicted blocks that were there already.
    pub present: u64,
    /// Evicted blocks lost: the writer was behind.
    pub behind: u64,
    /// Evicted blocks lost: the day's bytes were written.
    pub over_day: u64,
    /// Evicted blocks lost: no room on the disk or in the index, no memory, or a write had failed a moment ago.
    pub no_room: u64,
    /// Blocks dropped because their file changed.
    pub drops: u64,
    /// Reads and writes that failed. The segment was dropped.
    pub errors: u64,
    /// Blocks whose bytes were not those that were written. They were dropped.
    pub corrupted: u64,
}
