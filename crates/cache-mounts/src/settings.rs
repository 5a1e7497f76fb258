//! What a mount was asked to be. Goes to the supervisor and its workers as JSON.

use std::path::PathBuf;

pub use eke_cache_policy::admission::PassthroughMode;
pub use eke_cache_policy::size::Memory;
use serde::{Deserialize, Serialize};

/// A mount as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Settings {
    /// The backing directory, absolute.
    #[serde(with = "crate::path_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub dir: PathBuf,
    /// Where it is served; the same as `dir` to serve it over itself.
    #[serde(with = "crate::path_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub place: PathBuf,
    /// The most memory that the store may have.
    pub memory: Memory,
    /// When blocks are compressed.
    pub compress: Compress,
    /// May other users see it (`allow_other`)?
    pub others: bool,
    /// Which files use passthrough.
    pub passthrough: PassthroughMode,
    /// Be told of changes made in the backing directory (root only; without it, at each open)?
    pub watch: bool,
}

/// When a block that was read from the backing file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Compress {
    /// After the reply, by workers; what does not fit into the queues is not kept.
    #[default]
    Async,
    /// Before the reply.
    Sync,
}
