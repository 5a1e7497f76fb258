//! Why a directory could not be mounted, in words for whoever asked.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use eke_cache_mounts::status::{Kind, Refusal};

/// See the messages.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("cannot open the directory {path:?}: {source}")]
    Open { path: PathBuf, source: io::Error },
    #[error("{path:?} is not a directory")]
    NotADirectory { path: PathBuf },
    #[error(
        "a mount is at {path:?} whose server is gone ({source}). `eke cache umount` takes it away; then try again"
    )]
    Dead { path: PathBuf, source: io::Error },
    #[error(
        "{place:?} lies in {dir:?}: a cache of a directory inside it would hold itself. Choose a place outside, or none, to mount over the directory itself"
    )]
    Inside { place: PathBuf, dir: PathBuf },
    #[error(
        "a symbolic link is in the way to {path:?}, which was none a moment ago. Somebody else can change this path; try again when that is over"
    )]
    Link { path: PathBuf },
    #[error(
        "{place:?} is not covered, since programs have files in it open: {by}. They would go on below and not meet who opens the same file through the cache, so that a database could be destroyed. Stop them and start them again afterwards, give the cache a second place, or say --force"
    )]
    Written { place: PathBuf, by: String },
    #[error("{path:?} is on {kind}, where the kernel itself answers: there is nothing to cache")]
    Kernels { path: PathBuf, kind: String },
    #[error("{path:?} is on a mount of eke-cache already. `eke cache status` shows it")]
    AlreadyOurs { path: PathBuf },
    #[error(
        "/dev/fuse cannot be opened: {source}. FUSE is missing in this kernel, or its module is not loaded; `modprobe fuse` as root loads it"
    )]
    NoFuse { source: io::Error },
    #[error(
        "/dev/fuse cannot be opened: {source}. Whoever administers this machine or container must allow the device"
    )]
    FuseForbidden { source: io::Error },
    #[error("fusermount3 is missing, which mounts for users who are not root. Install the package \"fuse3\"")]
    NoFusermount,
    #[error(
        "other users may not be let in (allow_other) unless /etc/fuse.conf has the line \"user_allow_other\". Its administrator can add it; or mount without it"
    )]
    OthersForbidden,
    #[error(
        "cannot mount at {place:?}: {source}. This process lacks CAP_SYS_ADMIN; in a container, it must be given"
    )]
    NotPermitted { place: PathBuf, source: io::Error },
    #[error("cannot mount at {place:?}: the kernel says: {source}")]
    Refused { place: PathBuf, source: io::Error },
    #[error("cannot mount at {place:?}: fusermount3 says: {said}")]
    FusermountSays { place: PathBuf, said: String },
    #[error("cannot mount at {place:?}: {what}: {source}")]
    Failed { place: PathBuf, what: &'static str, source: io::Error },
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::NotADirectory { .. }
            | Error::Inside { .. }
            | Error::Kernels { .. }
            | Error::AlreadyOurs { .. } => Kind::Usage,
            Error::Open { source, .. } if source.kind() == io::ErrorKind::NotFound => Kind::Usage,
            Error::Open { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Kind::NotPermitted
            }
            Error::OthersForbidden | Error::NotPermitted { .. } | Error::FuseForbidden { .. } => {
                Kind::NotPermitted
            }
            Error::Written { .. } => Kind::Busy,
            _ => Kind::Failed,
        };
        Self { what: error.to_string(), kind }
    }
}
