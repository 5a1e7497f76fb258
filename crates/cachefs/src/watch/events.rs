//! What the kernel writes into the buffer of a fanotify group's reader (fanotify(7), "Reading fanotify events"). Pure.

use thiserror::Error;

/// `struct fanotify_event_metadata`: length, version, reserved, its own length, mask, descriptor, process.
const METADATA: usize = 24;
/// `struct fanotify_event_info_fid` up to its `struct file_handle`: type, pad, length, file system.
const FID: usize = 12;
/// `struct file_handle` without its bytes: how many there are, their type.
const HANDLE: usize = 8;

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// What happened: `FAN_MODIFY` and so on.
    pub mask: u64,
    /// The process that did it, as the reader sees it; 0 if it is not to be seen from there.
    pub pid: i32,
    /// A descriptor of the file that is the reader's from now on; negative if there is none.
    pub fd: i32,
    /// The file as open_by_handle_at(2) takes it: a `struct file_handle`, its bytes included.
    pub handle: Option<&'a [u8]>,
}

/// What cannot be an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Strange {
    /// Of a kernel that speaks otherwise.
    #[error("its events are of version {0}; eke knows version {known}", known = libc::FANOTIFY_METADATA_VERSION)]
    Version(u8),
    /// A length leads out of the buffer, or out of the event.
    #[error("an event says a length that cannot be")]
    Length,
}

/// The events in what one read(2) returned. Nothing follows what is [`Strange`].
pub fn events(buffer: &[u8]) -> impl Iterator<Item = Result<Event<'_>, Strange>> {
    let mut rest = buffer;
    std::iter::from_fn(move || {
        let (event, after) = match rest {
            [] => return None,
            _ => match first(rest) {
                Ok((event, after)) => (Ok(event), after),
                Err(strange) => (Err(strange), &[][..]),
            },
        };
        rest = after;
        Some(event)
    })
}

/// The first event, and what comes after it.
fn first(buffer: &[u8]) -> Result<(Event<'_>, &[u8]), Strange> {
    let metadata = buffer.get(..METADATA).ok_or(Strange::Length)?;
    if metadata[4] != libc::FANOTIFY_METADATA_VERSION {
        return Err(Strange::Version(metadata[4]));
    }
    let own = usize::from(u16::from_ne_bytes(at(metadata, 6)?));
    let (event, after) = split(buffer, u32::from_ne_bytes(at(metadata, 0)?), METADATA)?;
    let records = event.get(own.max(METADATA)..).ok_or(Strange::Length)?;
    let event = Event {
        mask: u64::from_ne_bytes(at(metadata, 8)?),
        fd: i32::from_ne_bytes(at(metadata, 16)?),
        pid: i32::from_ne_bytes(at(metadata, 20)?),
        handle: handle(records)?,
    };
    Ok((event, after))
}

/// The file's handle among an event's information records; records of other types are passed over.
fn handle(mut records: &[u8]) -> Result<Option<&[u8]>, Strange> {
    while !records.is_empty() {
        let (record, after) = split(records, u32::from(u16::from_ne_bytes(at(records, 2)?)), 4)?;
        if record[0] == libc::FAN_EVENT_INFO_TYPE_FID {
            let bytes = u32::from_ne_bytes(at(record, FID)?) as usize;
            let handle = record.get(FID..).and_then(|r| r.get(..HANDLE.checked_add(bytes)?));
            return handle.map(|h| (bytes > 0).then_some(h)).ok_or(Strange::Length);
        }
        records = after;
    }
    Ok(None)
}

/// Takes off a part that says to be `len` long and cannot be shorter than `least`.
fn split(bytes: &[u8], len: u32, least: usize) -> Result<(&[u8], &[u8]), Strange> {
    let len = len as usize;
    if len < least { Err(Strange::Length) } else { bytes.split_at_checked(len).ok_or(Strange::Length) }
}

fn at<const N: usize>(bytes: &[u8], offset: usize) -> Result<[u8; N], Strange> {
    bytes.get(offset..).and_then(|b| b.first_chunk()).copied().ok_or(Strange::Length)
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
