//! Evicted blocks on a faster disk: what was requested, and what is there.

use std::path::PathBuf;

use eke_model::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// Where evicted blocks go, as requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpillSettings {
    /// A directory of the user who mounts, absolute, on another file system than the backing directory.
    #[serde(with = "eke_model::path_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub dir: PathBuf,
    /// The most bytes there; null: a quarter of what is free.
    pub size: Option<Bytes>,
    /// The most bytes written there in a day; null: a tenth of that disk.
    pub day: Option<Bytes>,
}

/// Evicted blocks on a faster disk. All is 0 without one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SpillStats {
    /// Is there one?
    pub on: bool,
    /// The most bytes there.
    pub limit: Bytes,
    /// Bytes there, with those of dropped blocks.
    pub held: Bytes,
    /// Memory of its tables and of what waits to be written.
    pub memory: Bytes,
    /// The most bytes written there in a day.
    pub day_limit: Bytes,
    /// Bytes written there today (UTC), also by earlier mounts.
    pub day_written: Bytes,
    /// Bytes written there by this worker.
    pub written: Bytes,
    /// Blocks that can be read from there.
    pub blocks: u64,
    /// Blocks that the last mount left there. Those of files that have changed since are dropped at the first open.
    pub restored: u64,
    /// Requested blocks that came from there.
    pub hits: u64,
    /// Bytes of files that came from there.
    pub from_spill: Bytes,
    /// Moving average of the cost of a block from there; null before the first.
    pub cost_ns: Option<Nanos>,
    /// Evicted blocks not written: nobody had requested them again.
    pub unrequested: u64,
    /// Evicted blocks not written: they were there already.
    pub present: u64,
    /// Evicted blocks lost: they came faster than they are written.
    pub behind: u64,
    /// Evicted blocks lost: the day's bytes were written.
    pub over_day: u64,
    /// Evicted blocks lost: no room there or in memory, or a write had failed less than a minute before.
    pub no_room: u64,
    /// Blocks dropped because their file changed.
    pub drops: u64,
    /// Reads and writes there that failed.
    pub errors: u64,
    /// Blocks that were not as they were written. They were read from the backing file.
    pub corrupted: u64,
}
