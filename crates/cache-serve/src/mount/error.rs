//! Why a directory could not be mounted: messages for the user.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use eke_cache_mounts::status::{Refusal, RefusalKind};

/// See the messages.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each variant has its message")]
pub enum Error {
    #[error("cannot open the directory {path:?}: {source}")]
    Open { path: PathBuf, source: io::Error },
    #[error("{path:?} is not a directory")]
    NotADirectory { path: PathBuf },
    #[error("the server of the mount at {path:?} is gone ({source}). Run `eke cache umount`, then try again")]
    Dead { path: PathBuf, source: io::Error },
    #[error(
        "{place:?} is inside {dir:?}: the cache would serve itself. Choose a place outside, or none to mount over the directory itself"
    )]
    Inside { place: PathBuf, dir: PathBuf },
    #[error(
        "the path {path:?} has become a symbolic link in the last moment. Another user can change this path; try again when that has ended"
    )]
    Link { path: PathBuf },
    #[error(
        "cannot mount over {place:?}: programs have files open in it: {by}. They would go on writing to the backing files and not meet the locks of programs that use the cache, so a database could be destroyed. Stop them and start them again afterwards, give the cache a second place, or use --force"
    )]
    Written { place: PathBuf, by: String },
    #[error("programs use the directory {place:?}: {by}")]
    Used { place: PathBuf, by: String },
    #[error(
        "cannot mount over {place:?}: the kernel's NFS server exports {export:?}. Its clients would get the error ESTALE (\"Stale file handle\") for files of the mount that the kernel has forgotten. Give the cache a second place and leave the export as it is, end the export, or use --force"
    )]
    Exported { place: PathBuf, export: PathBuf },
    #[error("{path:?} is on {kind}, a file system of the kernel itself: there is nothing to cache")]
    Kernels { path: PathBuf, kind: String },
    #[error(
        "cannot mount over {place:?}: that would cover {needed:?}, which the cache itself needs. Cache the directories inside that are on a disk"
    )]
    Covers { place: PathBuf, needed: PathBuf },
    #[error(
        "cannot mount at {place:?}: this process may open {most} files, and the cache needs {needed}. Raise its limit: `ulimit -n` in a shell, LimitNOFILE= in a unit of systemd"
    )]
    FewFiles { place: PathBuf, most: u64, needed: u64 },
    #[error("{path:?} is on a mount of eke-cache already: `eke cache status` shows it")]
    AlreadyOurs { path: PathBuf },
    #[error(
        "cannot open /dev/fuse: {source}. This kernel lacks FUSE, or its module is not loaded; `modprobe fuse` as root loads it"
    )]
    NoFuse { source: io::Error },
    #[error(
        "cannot open /dev/fuse: {source}. The administrator of this machine or container must allow the device"
    )]
    FuseForbidden { source: io::Error },
    #[error("fusermount3 is missing; users who are not root need it. Install the package \"fuse3\"")]
    NoFusermount,
    #[error(
        "other users may use the mount (allow_other) only if /etc/fuse.conf has the line \"user_allow_other\". The administrator can add it; or mount without allow_other"
    )]
    OthersForbidden,
    #[error(
        "cannot mount at {place:?}: {source}. This process lacks CAP_SYS_ADMIN; a container must be started with it"
    )]
    NotPermitted { place: PathBuf, source: io::Error },
    #[error("cannot mount at {place:?}: {source}")]
    Refused { place: PathBuf, source: io::Error },
    #[error("cannot mount at {place:?}: fusermount3 failed: {message}")]
    Fusermount { place: PathBuf, message: String },
    #[error("cannot mount at {place:?}: {what}: {source}")]
    Failed { place: PathBuf, what: &'static str, source: io::Error },
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::NotADirectory { .. }
            | Error::Inside { .. }
            | Error::Kernels { .. }
            | Error::Covers { .. }
            | Error::AlreadyOurs { .. } => RefusalKind::Usage,
            Error::Open { source, .. } if source.kind() == io::ErrorKind::NotFound => RefusalKind::Usage,
            Error::Open { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                RefusalKind::NotPermitted
            }
            Error::OthersForbidden | Error::NotPermitted { .. } | Error::FuseForbidden { .. } => {
                RefusalKind::NotPermitted
            }
            Error::Written { .. } | Error::Used { .. } | Error::Exported { .. } => RefusalKind::Busy,
            _ => RefusalKind::Failed,
        };
        Self { what: error.to_string(), kind }
    }
}
