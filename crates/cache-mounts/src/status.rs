//! A mount's status, as `eke cache status` shows it, and the messages on its socket: one JSON object a line.

use std::path::PathBuf;

use eke_model::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::settings::Settings;
use crate::shared::SharedStats;
use crate::spill::SpillStats;

/// A client's request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ask")]
pub enum Request {
    /// Report the status.
    Status,
    /// Unmount.
    Umount {
        /// Also while files are open (`MNT_DETACH`): the mount disappears at once, and open files go on until they are closed.
        lazy: bool,
    },
    /// Read all files below a path into the store. It ends early when the connection does.
    Warm {
        /// Below the mount point; empty for all of it.
        #[serde(with = "eke_model::path_text")]
        path: PathBuf,
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
    /// To `Warm`, several times a second: how far it is.
    Warming(WarmProgress),
    /// To `Warm`: it has ended.
    Warmed(WarmProgress),
    /// The request was refused, or failed.
    Refused(Refusal),
}

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{what}")]
pub struct Refusal {
    /// For the user: what was tried, on what, what the kernel answered, what to do.
    pub what: String,
    /// Decides the command's exit status and hint.
    pub kind: RefusalKind,
}

/// How far the warming of a path is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WarmProgress {
    /// All files and bytes below the path were counted.
    pub surveyed: bool,
    /// Files below the path, counted so far.
    pub files: u64,
    /// Their bytes.
    pub bytes: Bytes,
    /// Files that were read to their end, or were in the store.
    pub files_done: u64,
    /// Bytes of files that were read, or were in the store.
    pub passed: Bytes,
    /// Bytes read from the disk.
    pub read: Bytes,
    /// Bytes of files that are in the store now.
    pub kept: Bytes,
    /// Memory that the new ones of these take.
    pub taken: Bytes,
    /// Bytes of files that are not kept because they do not compress.
    pub incompressible: Bytes,
    /// Files and directories that could not be read.
    pub failed: u64,
    /// The first of these, with the kernel's answer.
    pub first_error: Option<String>,
    /// It ended early: more would not fit into the store.
    pub full: bool,
}

/// Kinds of refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// The kernel refused, or something is missing.
    Failed,
    /// The request makes no sense.
    Usage,
    /// Only another user may.
    NotPermitted,
    /// Files are open in the mount (EBUSY).
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

/// A new mount, as `eke cache mount` prints it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ready {
    /// The mount point.
    #[serde(with = "eke_model::path_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub place: PathBuf,
    /// The backing directory.
    #[serde(with = "eke_model::path_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub dir: PathBuf,
    /// The supervisor's process.
    pub pid: u32,
    /// The worker's process.
    pub worker_pid: u32,
    /// The most memory that the store may have.
    pub memory: Bytes,
    /// What does not work here, and why: a sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// A mount's status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Status {
    /// The mount point.
    #[serde(with = "eke_model::path_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub place: PathBuf,
    /// The backing directory.
    #[serde(with = "eke_model::path_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub dir: PathBuf,
    /// The user who mounted it.
    pub uid: u32,
    /// The supervisor's process.
    pub pid: u32,
    /// The worker's process; null between a worker's death and the start of the next one.
    pub worker_pid: Option<u32>,
    /// Workers that died and were replaced.
    pub restarts: u64,
    /// Why the last worker died, as a sentence.
    pub last_death: Option<String>,
    /// Seconds since it was mounted.
    pub up_s: u64,
    /// Why it stands aside; null: it serves the directory.
    #[serde(default)] // a mount that an earlier version serves does not report it
    pub aside: Option<AsideStats>,
    /// Why it does not stand aside though it gains nothing, or does not return though it would, as a sentence.
    #[serde(default)] // as above
    pub not_moved: Option<String>,
    /// The settings that were requested.
    pub settings: Settings,
    /// The worker's stats; null while there is no worker or it does not answer.
    pub worker: Option<WorkerStats>,
}

/// A mount that stands aside: the directory is as without it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AsideStats {
    /// Seconds since it left.
    pub since_s: u64,
    /// Why, as the end of a sentence.
    pub why: String,
}

/// A worker's stats. Counts begin at 0 with each worker.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WorkerStats {
    /// The block store.
    pub store: StoreStats,
    /// Where reads were answered from, and their costs.
    pub tier: TierStats,
    /// Which files use passthrough, and why.
    pub admission: AdmissionStats,
    /// How much memory the store may have now.
    pub size: SizeStats,
    /// Memory for files besides their blocks.
    pub files: FilesStats,
    /// How changes made in the backing directory are noticed.
    pub watch: WatchStats,
    /// What was hot before the last unmount.
    pub remember: RememberStats,
    /// Evicted blocks on a faster disk.
    pub spill: SpillStats,
    /// The tier that a farm shares.
    pub shared: SharedStats,
    /// Mounts inside the directory that are not served, since they have flags (nosuid and the like) that this mount lacks; the first 16.
    pub not_served: Vec<NotServed>,
}

/// A mount inside the directory that is not served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotServed {
    /// Its mount point.
    #[serde(with = "eke_model::path_text")]
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
    /// The most memory that it may use now.
    pub limit: Bytes,
    /// Memory in use.
    pub held: Bytes,
    /// Memory of blocks that wait for compression, on top of that.
    pub queued: Bytes,
    /// Size of the stored blocks in their files.
    pub raw: Bytes,
    /// Their compressed size.
    pub compressed: Bytes,
    /// Bytes of files stored in each byte of memory; null while the store is empty.
    pub ratio: Option<f64>,
    /// Share of block lookups that hit (0 to 1); null before the first lookup.
    pub hit_rate: Option<f64>,
    /// Stored blocks that are all zero.
    pub zero: u64,
    /// Blocks stored uncompressed.
    pub uncompressed: u64,
    /// Blocks stored compressed by the fast codec.
    pub fast: u64,
    /// Blocks stored recompressed, by the codec with the higher ratio.
    pub recompressed: u64,
    /// Block lookups that hit.
    pub hits: u64,
    /// Block lookups that missed.
    pub misses: u64,
    /// Hits whose bytes had changed in memory: dropped and read again.
    pub corrupted: u64,
    /// Blocks inserted.
    pub insertions: u64,
    /// Blocks rejected: they do not compress.
    pub incompressible: u64,
    /// Blocks rejected: the queue for compression was full.
    pub overrun: u64,
    /// Blocks rejected: their file changed before they were inserted.
    pub stale: u64,
    /// Blocks rejected: no room within the limit, or no memory from the kernel.
    pub no_room: u64,
    /// Blocks evicted to make room.
    pub evictions: u64,
    /// Blocks dropped because their file changed.
    pub drops: u64,
    /// Recompressions so far.
    pub recompressions: u64,
}

/// Where reads were answered from, and their costs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TierStats {
    /// Bytes read from the store.
    pub from_store: Bytes,
    /// Bytes read from the backing disk.
    pub from_backing: Bytes,
    /// Bytes written to the backing disk.
    pub written: Bytes,
    /// Reads that waited for another read's fetch of the same block.
    pub waited: u64,
    /// Moving average of the cost of a block from the store; null before the first.
    pub store_cost_ns: Option<Nanos>,
    /// Moving average of the cost of a block from the backing file; null before the first.
    pub backing_cost_ns: Option<Nanos>,
    /// Moving average of the cost of compressing a block; null before the first.
    pub compress_cost_ns: Option<Nanos>,
}

/// Which files use passthrough, and why.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AdmissionStats {
    /// Files whose blocks are stored.
    pub admitted: u64,
    /// Files whose blocks are not stored.
    pub declined: u64,
    /// Files that use passthrough at their next open.
    pub passthrough: u64,
    /// Open files that the kernel reads itself (passthrough).
    pub open_passthrough: u64,
    /// Why passthrough is not available; null if it is.
    pub no_passthrough: Option<String>,
    /// The last decisions and their reasons, a sentence each, newest last.
    pub reasons: Vec<String>,
}

/// How much memory the store may have now.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SizeStats {
    /// The requested size.
    pub asked: Bytes,
    /// The size that it may have now.
    pub now: Bytes,
    /// Why the size was changed last, as a sentence with values and units; null if it never was.
    pub last_reason: Option<String>,
    /// Seconds since then.
    pub last_s: Option<u64>,
}

/// Memory for files besides their blocks. It grows with the files that the kernel knows, and counts towards the requested size.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FilesStats {
    /// Files and directories that the kernel knows.
    pub known: u64,
    /// Memory of the worker's tables of them.
    pub tables: Bytes,
    /// Memory of the ledger, which hands them to the next worker.
    pub ledger: Bytes,
    /// The most backing descriptors that may be open for them.
    pub descriptors: u64,
    /// All of it, with the kernel's memory for the descriptors.
    pub memory: Bytes,
}

/// What was hot before the last unmount, and is read again while the disk is idle.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RememberStats {
    /// What it does.
    pub state: RememberState,
    /// Why it does not, or what failed.
    pub why: Option<String>,
    /// Bytes of files that were hot, as far as the files are still there.
    pub listed: Bytes,
    /// Of these, read again.
    pub done: Bytes,
}

/// What happens to the list of what was hot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RememberState {
    /// There is none: it was not requested, or there is no place for it.
    #[default]
    Off,
    /// It is read again.
    Reading,
    /// It is not all read again; others use the disk.
    Waiting,
    /// All of it was read again, or it was empty.
    Done,
    /// It was read again until the store was full.
    Full,
}

/// How changes made in the backing directory are noticed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WatchStats {
    /// Does the kernel report them (fanotify)? If not, they are noticed at each open.
    pub on: bool,
    /// Why not.
    pub why: Option<String>,
    /// Does it report names and attributes, too? Then they are kept in memory until they change.
    pub names: bool,
    /// Changes reported.
    pub changes: u64,
    /// How often the kernel's queue overflowed. All names are asked for again then, and open files compared.
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
        let refusal = Refusal { what: "busy".into(), kind: RefusalKind::Busy };
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
