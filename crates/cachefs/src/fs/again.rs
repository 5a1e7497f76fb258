//! Requests that a dead worker may have done already.
//!
//! The kernel sends again what a dead worker left unanswered. What was done before it died must not fail now, nor be done
//! twice. The worker cannot know; it looks at what is there:
//!
//! - What is to be made is there: accepted, if it is of the same kind, of the same user, and changed less than a minute ago.
//!   Limit: if somebody else had made it in that minute, the caller should have been told EEXIST.
//! - What is to be removed or renamed is not there: accepted. Limit: so it is if it never was there.
//! - Data to be appended is the file's end: accepted. Limit: two equal records, the first of which somebody else wrote.
//! - An exchange of two names is refused with EIO: done twice it would be undone.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, Statx};
use rustix::io::Errno;

use super::Caller;
use super::error::is;
use crate::backing::File;

const A_MOMENT: Duration = Duration::from_secs(60);

/// May what is there be what the dead worker made?
pub(super) fn made(statx: &Statx, kind: FileType, caller: &Caller, now: SystemTime) -> bool {
    let changed = u64::try_from(statx.stx_ctime.tv_sec).unwrap_or(0);
    let age = now.duration_since(UNIX_EPOCH + Duration::from_secs(changed)).unwrap_or_default();
    let ours = !rustix::process::geteuid().is_root() || statx.stx_uid == caller.uid;
    FileType::from_raw_mode(statx.stx_mode.into()) == kind && ours && age < A_MOMENT
}

/// What was to be taken away, and is not there any more.
pub(super) fn removed(result: io::Result<()>, caller: &Caller) -> io::Result<()> {
    if caller.again && is(&result, Errno::NOENT) { Ok(()) } else { result }
}

/// Is the data the end of the file already?
pub(super) fn appended(file: &File, offset: u64, data: &[u8]) -> io::Result<bool> {
    if file.stamp()?.size != offset.saturating_add(data.len() as u64) {
        return Ok(false);
    }
    let mut there = vec![0; data.len()];
    Ok(file.read_at(&mut there, offset)? == data.len() && there == data)
}
