//! Requests that a dead worker may have executed already.
//!
//! The kernel resends what a dead worker left unanswered. What was executed before its death must neither fail now nor be
//! executed twice. The new worker cannot know, so it examines the present state:
//!
//! - The object to be created exists: accepted, if it has the same kind and owner and changed less than a minute ago. Limit:
//!   if somebody else created it in that minute, the caller should have got EEXIST.
//! - The object to be removed or renamed does not exist: accepted. Limit: it may never have existed.
//! - The data to be appended, or its beginning, is the file's end: only the rest is appended. Limit: somebody else may have appended an equal record.
//! - An exchange of two names is refused with EIO, because executing it twice would undo it.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, Statx};
use rustix::io::Errno;

use super::Caller;
use super::error::is;
use crate::backing::File;

const A_MOMENT: Duration = Duration::from_secs(60);

/// True if the existing object may be the one that the dead worker created.
pub(super) fn made(statx: &Statx, kind: FileType, caller: &Caller, now: SystemTime) -> bool {
    let changed = u64::try_from(statx.stx_ctime.tv_sec).unwrap_or(0);
    let age = now.duration_since(UNIX_EPOCH + Duration::from_secs(changed)).unwrap_or_default();
    let ours = !rustix::process::geteuid().is_root() || statx.stx_uid == caller.uid;
    FileType::from_raw_mode(statx.stx_mode.into()) == kind && ours && age < A_MOMENT
}

/// Accepts ENOENT for a removal that was resent.
pub(super) fn removed(result: io::Result<()>, caller: &Caller) -> io::Result<()> {
    if caller.resent && is(&result, Errno::NOENT) { Ok(()) } else { result }
}

/// How many of the bytes, from the first on, are already the end of the file: a worker that is killed may have written a part.
pub(super) fn appended(file: &File, offset: u64, data: &[u8]) -> io::Result<usize> {
    let done = file.stamp()?.size.saturating_sub(offset);
    let Some(begun) = usize::try_from(done).ok().and_then(|done| data.get(..done)) else { return Ok(0) };
    let mut existing = vec![0; begun.len()];
    let is_begun = file.read_at(&mut existing, offset)? == begun.len() && existing == begun;
    Ok(if is_begun { begun.len() } else { 0 })
}
