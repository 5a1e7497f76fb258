//! Why there can be no shared tier: messages for the user.

use std::io;
use std::path::PathBuf;

use eke_cache_mounts::engine_url::UrlError;
use eke_cache_mounts::status::{Refusal, RefusalKind};
use thiserror::Error;

/// See the messages.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each variant has its message")]
pub enum SharedError {
    #[error("cannot use the engine of --shared: {0}")]
    Url(#[from] UrlError),
    #[error(
        "files of {dir:?} cannot be shared: on its file system ({kind:#x}) each machine numbers files for itself, so a block of one could be another's. A farm can share NFS, CephFS, OCFS2, GFS2, ext4, XFS, Btrfs and F2FS"
    )]
    Numbers { dir: PathBuf, kind: u32 },
    #[error(
        "files of {dir:?} cannot be shared without a name: its file system has no id that is the same on all machines. Choose one for this export or disk, and give it on each: --shared-name NAME"
    )]
    NoName { dir: PathBuf },
    #[error("cannot read {path:?}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("cannot use {path:?}: it is no regular file, or longer than {most} bytes")]
    Strange { path: PathBuf, most: u64 },
    #[error(
        "cannot use the secret in {path:?}: it belongs to user {owner}, and this mount to user {uid}. `chown {uid}` gives it to that user"
    )]
    NotOwn { path: PathBuf, owner: u32, uid: u32 },
    #[error("cannot use the secret in {path:?}: others can read it. `chmod 600` ends that")]
    Readable { path: PathBuf },
    #[error(
        "the key in {path:?} has {len} bytes instead of 32. `head -c 32 /dev/urandom` makes one; all nodes need the same"
    )]
    Key { path: PathBuf, len: usize },
    #[error("{path:?} has no password of one line")]
    Password { path: PathBuf },
    #[error(
        "cannot start {path:?} for --shared: {source}; it must be in the directory of eke-cache; packages have it in eke-farm"
    )]
    Process { path: PathBuf, source: io::Error },
    #[error("cannot use the shared tier: {0}")]
    Kernel(io::Error),
}

impl From<SharedError> for Refusal {
    fn from(error: SharedError) -> Self {
        let kind = match &error {
            SharedError::NotOwn { .. } | SharedError::Readable { .. } => RefusalKind::NotPermitted,
            SharedError::Process { .. } | SharedError::Kernel(_) => RefusalKind::Failed,
            _ => RefusalKind::Usage,
        };
        Self { what: error.to_string(), kind }
    }
}
