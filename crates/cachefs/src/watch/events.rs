//! Parses the events of a fanotify group (fanotify(7), "Reading fanotify events"). Pure.

use thiserror::Error;

/// `struct fanotify_event_metadata`: length, version, reserved, its own length, mask, descriptor, process.
const METADATA: usize = 24;
/// `struct fanotify_event_info_fid` up to its `struct file_handle`: type, pad, length, file system.
const FID: usize = 12;
/// `struct file_handle` without its bytes: their count and type.
const HANDLE: usize = 8;

/// A name in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventName<'a> {
    /// The directory's `struct file_handle` with its bytes.
    pub dir: &'a [u8],
    /// The name there; `.` for the directory itself.
    pub name: &'a [u8],
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// The kind of event: `FAN_MODIFY` and so on.
    pub mask: u64,
    /// The process that caused it, in the reader's namespace; 0 if it is not visible there.
    pub pid: i32,
    /// A descriptor of the file, which the reader owns from now on; negative: none.
    pub fd: i32,
    /// The file as open_by_handle_at(2) takes it: a `struct file_handle` with its bytes.
    pub handle: Option<&'a [u8]>,
    /// The name that the event is about (`FAN_REPORT_DFID_NAME`).
    pub name: Option<EventName<'a>>,
}

/// Malformed events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EventError {
    /// From a kernel with another format.
    #[error("fanotify events have version {0}; eke supports version {known}", known = libc::FANOTIFY_METADATA_VERSION)]
    Version(u8),
    /// A length is outside of the buffer or of the event.
    #[error("a fanotify event has an invalid length")]
    Length,
}

/// The events in the result of one read(2). An error ends the iteration.
pub fn events(buffer: &[u8]) -> impl Iterator<Item = Result<Event<'_>, EventError>> {
    let mut rest = buffer;
    std::iter::from_fn(move || {
        let (event, after) = match rest {
            [] => return None,
            _ => match first(rest) {
                Ok((event, after)) => (Ok(event), after),
                Err(error) => (Err(error), &[][..]),
            },
        };
        rest = after;
        Some(event)
    })
}

/// The first event, and the bytes after it.
fn first(buffer: &[u8]) -> Result<(Event<'_>, &[u8]), EventError> {
    let metadata = buffer.get(..METADATA).ok_or(EventError::Length)?;
    if metadata[4] != libc::FANOTIFY_METADATA_VERSION {
        return Err(EventError::Version(metadata[4]));
    }
    let own = usize::from(u16::from_ne_bytes(at(metadata, 6)?));
    let (event, after) = split(buffer, u32::from_ne_bytes(at(metadata, 0)?), METADATA)?;
    let records = event.get(own.max(METADATA)..).ok_or(EventError::Length)?;
    let event = Event {
        mask: u64::from_ne_bytes(at(metadata, 8)?),
        fd: i32::from_ne_bytes(at(metadata, 16)?),
        pid: i32::from_ne_bytes(at(metadata, 20)?),
        handle: None,
        name: None,
    };
    Ok((with_records(event, records)?, after))
}

/// The event with what its information records say. Records of other types are skipped.
fn with_records<'a>(mut event: Event<'a>, mut records: &'a [u8]) -> Result<Event<'a>, EventError> {
    while !records.is_empty() {
        let (record, after) = split(records, u32::from(u16::from_ne_bytes(at(records, 2)?)), 4)?;
        match record[0] {
            libc::FAN_EVENT_INFO_TYPE_FID => event.handle = handle(record)?.0,
            libc::FAN_EVENT_INFO_TYPE_DFID_NAME => {
                let (dir, name) = handle(record)?;
                let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
                event.name = dir.filter(|_| !name.is_empty()).map(|dir| EventName { dir, name });
            }
            _ => {}
        }
        records = after;
    }
    Ok(event)
}

/// The handle of a record, unless it has no bytes, and what follows it.
fn handle(record: &[u8]) -> Result<(Option<&[u8]>, &[u8]), EventError> {
    let bytes = u32::from_ne_bytes(at(record, FID)?) as usize;
    let split = HANDLE.checked_add(bytes).and_then(|len| record.get(FID..)?.split_at_checked(len));
    let (handle, rest) = split.ok_or(EventError::Length)?;
    Ok(((bytes > 0).then_some(handle), rest))
}

/// Splits off a part of `len` bytes, which cannot be shorter than `least`.
fn split(bytes: &[u8], len: u32, least: usize) -> Result<(&[u8], &[u8]), EventError> {
    let len = len as usize;
    if len < least { Err(EventError::Length) } else { bytes.split_at_checked(len).ok_or(EventError::Length) }
}

fn at<const N: usize>(bytes: &[u8], offset: usize) -> Result<[u8; N], EventError> {
    bytes.get(offset..).and_then(|b| b.first_chunk()).copied().ok_or(EventError::Length)
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
