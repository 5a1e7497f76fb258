//! A mount's settings. The supervisor and its workers get them as JSON.

use std::path::PathBuf;

pub use eke_cache_policy::admission::PassthroughMode;
pub use eke_cache_policy::size::{DEFAULT, MOST_PERCENT, Memory};
use serde::{Deserialize, Serialize};

use crate::shared::SharedSettings;
use crate::spill::SpillSettings;

/// A mount's settings, as requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Settings {
    /// The backing directory, absolute.
    #[serde(with = "eke_model::path_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub dir: PathBuf,
    /// The mount point; the same as `dir` to mount over the directory itself.
    #[serde(with = "eke_model::path_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub place: PathBuf,
    /// The most memory that the store may have.
    pub memory: Memory,
    /// When blocks are compressed.
    pub compress: Compress,
    /// May other users use it (`allow_other`)?
    pub others: bool,
    /// Which files use passthrough.
    pub passthrough: PassthroughMode,
    /// Watch the backing directory for changes (fanotify, root only)? Without it they are noticed at each open.
    pub watch: bool,
    /// How long names and attributes may be old where changes of them are not reported, in seconds.
    #[serde(default)] // a mount that an earlier version serves reports none
    pub names_s: u32,
    /// Keep the list of what was hot over unmount and reboot, and read it again while the disk is idle?
    #[serde(default)] // as above
    pub remember: bool,
    /// Stay in the directory tree also while it gains nothing? Without it a mount of root's over its own directory stands aside then.
    #[serde(default)] // as above
    pub keep_mounted: bool,
    /// Where evicted blocks go; null: they are lost.
    #[serde(default)] // as above
    pub spill: Option<SpillSettings>,
    /// The tier that a farm shares; null: there is none.
    #[serde(default)] // as above
    pub shared: Option<SharedSettings>,
}

/// When a block that was read from the backing file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Compress {
    /// After the reply, by compressor threads. Blocks that do not fit into the queue are not kept.
    #[default]
    Async,
    /// Before the reply.
    Sync,
}
