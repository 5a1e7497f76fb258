//! The shared tier of a farm: what was requested, and what is.

use std::path::PathBuf;

use eke_model::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// Bytes that a node offers in a second at most, unless requested otherwise: half of a link of 1 Gb/s.
pub const BANDWIDTH: Bytes = Bytes::mib(60);

/// The tier, as requested. It has no password: that is in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SharedSettings {
    /// Where the engine is, as [`crate::engine_url`] parses it.
    pub url: String,
    /// The origin's name, the same on all nodes; null: the id of its file system.
    pub name: Option<String>,
    /// A file with the engine's password.
    pub password: Option<PathBuf>,
    /// A file with the certificates of authorities that sign the engine's; null: those of this machine.
    pub ca: Option<PathBuf>,
    /// A file with the certificate of this client, for an engine that wants one; null: none.
    pub cert: Option<PathBuf>,
    /// A file with the key of this certificate.
    pub private_key: Option<PathBuf>,
    /// A file with the key of sealed blocks, 32 bytes; null: they are not sealed.
    pub key: Option<PathBuf>,
    /// The most bytes that are offered in a second.
    pub bandwidth: Bytes,
}

/// The shared tier. All is 0 without one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SharedStats {
    /// Is there one?
    pub on: bool,
    /// Requested blocks that came from there.
    pub hits: u64,
    /// Requested blocks that were not there.
    pub misses: u64,
    /// Bytes of files that came from there.
    pub from_shared: Bytes,
    /// Moving average of the cost of a block from there; null before the first.
    pub cost_ns: Option<Nanos>,
    /// Requested blocks that did not come in time.
    pub late: u64,
    /// Requested blocks for which the engine failed.
    pub failed: u64,
    /// Requested blocks not asked for, because the engine failed before.
    pub paused: u64,
    /// Blocks that were not as they were offered, or of another file or version. They were read from the backing file.
    pub refused: u64,
    /// Bytes that came over the wire.
    pub bytes_in: Bytes,
    /// Blocks sent there.
    pub offered: u64,
    /// Bytes sent there.
    pub bytes_out: Bytes,
    /// Blocks read from the backing file and not sent there: too many waited, the bandwidth was used, or the engine failed.
    pub not_offered: u64,
    /// Parts of the engine that nobody asks now, because they failed.
    pub open: u32,
    /// All parts.
    pub parts: u32,
    /// Connections to the engine that work.
    pub connected: u32,
    /// Memory that the engine uses, all its nodes together.
    pub engine_memory: Bytes,
    /// Its limit; 0: it has none.
    pub engine_limit: Bytes,
    /// Keys that it evicted.
    pub engine_evicted: u64,
    /// Blocks sent there that it did not store.
    pub engine_refused: u64,
    /// Some node has no limit of memory. False if the engine's report may not be read.
    pub engine_unlimited: bool,
    /// Some node evicts nothing and refuses blocks when it is full. False if the engine's report may not be read.
    pub engine_keeps_all: bool,
    /// Why the engine failed last, until it works again; null if it works.
    pub why: Option<String>,
}
