//! What a mount is and does, as `eke cache status` shows it, and what is said on its socket: one JSON object a line.

use std::path::PathBuf;

use eke_model::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::settings::Settings;

/// A client's question or wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ask")]
pub enum Request {
    /// What it is and does now.
    Status,
    /// End it.
    Umount {
        /// Take it from the tree of names at once, though files are open there (`MNT_DETACH`); they go on until closed.
        lazy: bool,
    },
}

/// The supervisor's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum Response {
    /// To `Status`.
    Status(Box<Status>),
    /// To `Umount`: the mount is gone.
    Done,
    /// Not done.
    Refused(Refusal),
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{what}")]
pub struct Refusal {
    /// For the user: what was tried, on what, what the kernel answered, what to do.
    pub what: String,
    /// Which status the command ends with, and what it adds.
    pub kind: Kind,
}

/// Sorts of refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The kernel refused, or something is missing.
    Failed,
    /// What was asked for makes no sense.
    Usage,
    /// Another user may.
    NotPermitted,
    /// Files are open there (EBUSY).
    Busy,
}

/// The one line that `eke-cache serve` writes on its standard output: `{"ready":{...}}` or `{"error":{...}}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// It is mounted, and a worker serves it.
    Ready(Ready),
    /// Nothing is mounted, and the process ends.
    Error(Refusal),
}

/// What `eke cache mount` made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ready {
    /// Where it is mounted.
    #[serde(with = "crate::path_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub place: PathBuf,
    /// The backing directory.
    #[serde(with = "crate::path_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub dir: PathBuf,
    /// The supervisor's process.
    pub pid: u32,
    /// The worker's process.
    pub worker_pid: u32,
    /// The most memory that the store may have.
    pub memory: Bytes,
    /// What it does without, and why: a sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// What a mount is and does now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Status {
    /// Where it is mounted.
    #[serde(with = "crate::path_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub place: PathBuf,
    /// The backing directory.
    #[serde(with = "crate::path_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub dir: PathBuf,
    /// Whose it is.
    pub uid: u32,
    /// The supervisor's process.
    pub pid: u32,
    /// The worker's process; none between a death and the next one.
    pub worker_pid: Option<u32>,
    /// How often a worker died and was followed by another.
    pub restarts: u64,
    /// Why the last one died, as a sentence.
    pub last_death: Option<String>,
    /// Seconds since it was mounted.
    pub up_s: u64,
    /// What was asked for.
    pub settings: Settings,
    /// What the worker knows; none while there is no worker or it does not answer.
    pub worker: Option<WorkerStats>,
}

/// What a worker knows. Counts begin anew with each worker.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WorkerStats {
    /// The block store.
    pub store: StoreStats,
    /// Where reads came from, and what they cost.
    pub tier: TierStats,
    /// Which files use passthrough, and why.
    pub admission: AdmissionStats,
    /// How much memory the store may have now.
    pub size: SizeStats,
    /// What is remembered of files.
    pub files: FilesStats,
    /// How changes made in the backing directory are noticed.
    pub watch: WatchStats,
    /// Mounts inside the directory that are not served, since they forbid what this mount does not; the first 16.
    pub not_served: Vec<NotServed>,
}

/// A mount inside the directory that is not served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotServed {
    /// Where it is.
    #[serde(with = "crate::path_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub place: PathBuf,
    /// Why, as the end of a sentence.
    pub why: String,
}

/// The block store.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct StoreStats {
    /// The most memory to hold now.
    pub limit: Bytes,
    /// Memory held.
    pub held: Bytes,
    /// Memory of blocks that wait for compression, on top of that.
    pub queued: Bytes,
    /// What the blocks held are in their files.
    pub raw: Bytes,
    /// What they are compressed.
    pub compressed: Bytes,
    /// Bytes of files held for each byte of memory; none while nothing is held.
    pub ratio: Option<f64>,
    /// The share (0 to 1) of blocks asked for that were held; none before the first.
    pub hit_rate: Option<f64>,
    /// Blocks held that are all zero.
    pub zero: u64,
    /// Blocks held as they are.
    pub uncompressed: u64,
    /// Blocks held compressed by the fast codec.
    pub fast: u64,
    /// Blocks held compressed by the dense codec.
    pub dense: u64,
    /// Blocks asked for and held.
    pub hits: u64,
    /// Blocks asked for and not held.
    pub misses: u64,
    /// Hits whose bytes had changed in memory: dropped and read again.
    pub corrupted: u64,
    /// Blocks taken in.
    pub insertions: u64,
    /// Blocks not taken in: they do not compress.
    pub incompressible: u64,
    /// Blocks not taken in: the queue for compression was full.
    pub overrun: u64,
    /// Blocks not taken in: they changed on the way.
    pub stale: u64,
    /// Blocks not taken in: no room within the limit, or no memory from the kernel.
    pub no_room: u64,
    /// Blocks that went for others.
    pub evictions: u64,
    /// Blocks dropped because their file changed.
    pub drops: u64,
    /// Blocks recompressed by the dense codec.
    pub denser: u64,
}

/// Where reads came from, and what they cost.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TierStats {
    /// Bytes answered from the store.
    pub from_store: Bytes,
    /// Bytes read from the backing disk.
    pub from_backing: Bytes,
    /// Bytes written to the backing disk.
    pub written: Bytes,
    /// Reads that waited for another's fetch of the same block.
    pub waited: u64,
    /// Running cost of a block from the store; none before the first.
    pub store_cost_ns: Option<Nanos>,
    /// Running cost of a block from the backing file; none before the first.
    pub backing_cost_ns: Option<Nanos>,
    /// Running cost of compressing a block; none before the first.
    pub compress_cost_ns: Option<Nanos>,
}

/// Which files use passthrough, and why.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AdmissionStats {
    /// Files whose blocks are taken in.
    pub taken_in: u64,
    /// Files whose blocks are not taken in.
    pub not_taken_in: u64,
    /// Files that use passthrough at their next open.
    pub passthrough: u64,
    /// Open files that the kernel reads itself (passthrough).
    pub open_passthrough: u64,
    /// Why passthrough cannot be had; none: it can.
    pub no_passthrough: Option<String>,
    /// What was decided last and why, a sentence each, newest last.
    pub reasons: Vec<String>,
}

/// How much memory the store may have now.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SizeStats {
    /// What was asked for.
    pub asked: Bytes,
    /// What it may have now.
    pub now: Bytes,
    /// Why it was changed last, as a sentence with values and units; none: never.
    pub last_reason: Option<String>,
    /// Seconds since then.
    pub last_s: Option<u64>,
}

/// What is remembered of files besides their blocks. It grows with the files that the kernel knows, and is within what was asked for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FilesStats {
    /// Files and directories that the kernel may ask for.
    pub known: u64,
    /// Memory of the worker's tables of them.
    pub tables: Bytes,
    /// Memory of the ledger, from which a next worker knows them.
    pub ledger: Bytes,
    /// Backing descriptors that are open for them, at most.
    pub descriptors: u64,
    /// All of it, with what the kernel holds for the descriptors.
    pub memory: Bytes,
}

/// How changes made in the backing directory are noticed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WatchStats {
    /// Does the kernel tell of them (fanotify)? If not they are seen at each open.
    pub on: bool,
    /// Why not.
    pub why: Option<String>,
    /// Changes told of.
    pub changes: u64,
    /// How often the kernel's queue ran over, so that everything was dropped.
    pub overflows: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn as_line<T: Serialize>(value: &T) -> String {
        serde_json::to_string(value).unwrap()
    }

    #[test]
    fn messages_have_the_documented_form() {
        assert_eq!(as_line(&Request::Status), r#"{"ask":"status"}"#);
        assert_eq!(as_line(&Request::Umount { lazy: true }), r#"{"ask":"umount","lazy":true}"#);
        assert_eq!(as_line(&Response::Done), r#"{"answer":"done"}"#);
        let refusal = Refusal { what: "busy".into(), kind: Kind::Busy };
        assert_eq!(
            as_line(&Response::Refused(refusal.clone())),
            r#"{"answer":"refused","what":"busy","kind":"busy"}"#
        );
        assert_eq!(as_line(&Start::Error(refusal)), r#"{"error":{"what":"busy","kind":"busy"}}"#);
    }

    #[test]
    fn an_older_supervisor_may_lack_stats() {
        let stats: WorkerStats = serde_json::from_str(r#"{"store":{"held":5}}"#).unwrap();
        assert_eq!(stats.store.held, Bytes(5));
        assert_eq!(stats.watch, WatchStats::default());
    }
}
