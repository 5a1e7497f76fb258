//! Why a directory cannot have evicted blocks: messages for the user.

use std::io;
use std::path::{Path, PathBuf};

use eke_cache_mounts::status::{Refusal, RefusalKind};
use thiserror::Error;

use crate::mount;

/// See the messages.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each variant has its message")]
pub enum SpillError {
    #[error("cannot keep evicted blocks: {0}")]
    Open(mount::Error),
    #[error(
        "cannot keep evicted blocks in {path:?}: it is inside what is mounted at {place:?}, so the cache would serve its own blocks. Choose a directory outside, on another disk"
    )]
    Inside { path: PathBuf, place: PathBuf },
    #[error(
        "cannot keep evicted blocks in {path:?}: it is on the file system of the backing directory, so a block comes from there no sooner than from its own file. Choose a directory on a faster disk"
    )]
    SameDisk { path: PathBuf },
    #[error(
        "cannot keep evicted blocks in {path:?}: its file system is in memory, which the cache uses better itself. Give the cache more memory, or choose a directory on a disk"
    )]
    InMemory { path: PathBuf },
    #[error(
        "cannot keep evicted blocks in {path:?}: it belongs to user {owner}, and this mount to user {uid}. The blocks are content of files; `chown {uid}` gives the directory to that user"
    )]
    NotOwn { path: PathBuf, owner: u32, uid: u32 },
    #[error("cannot keep evicted blocks in {path:?}: others can put files into it. `chmod 700` ends that")]
    Writable { path: PathBuf },
    #[error(
        "cannot keep evicted blocks in {path:?}: another cache keeps its blocks there now. Give each cache a directory of its own"
    )]
    InUse { path: PathBuf },
    #[error("{}", failed("keep evicted blocks in", path, source))]
    Failed { path: PathBuf, source: io::Error },
}

/// What was tried, on what, the kernel's answer, and what to do.
pub(super) fn failed(verb: &str, path: &Path, error: &io::Error) -> String {
    format!(
        "cannot {verb} {}: {error}; without --spill evicted blocks are read from the disk below",
        path.display()
    )
}

impl From<SpillError> for Refusal {
    fn from(error: SpillError) -> Self {
        let what = error.to_string();
        let kind = match error {
            SpillError::Open(e) => Self::from(e).kind,
            SpillError::Inside { .. } | SpillError::SameDisk { .. } | SpillError::InMemory { .. } => {
                RefusalKind::Usage
            }
            SpillError::NotOwn { .. } | SpillError::Writable { .. } => RefusalKind::NotPermitted,
            SpillError::InUse { .. } => RefusalKind::Busy,
            SpillError::Failed { .. } => RefusalKind::Failed,
        };
        Self { what, kind }
    }
}
