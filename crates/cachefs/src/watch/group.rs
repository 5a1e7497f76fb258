//! The system calls: a fanotify group, its mark, and the file of an event.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, fstatfs, openat, statx};

use super::handles::Layout;

/// The events: changes of content by write(2), truncate(2), fallocate(2), copies and clones; and the close of a file open
/// for writing, because a write through a mapping has no event before that (fanotify(7), "Limitations").
pub const CONTENT: u64 = libc::FAN_MODIFY | libc::FAN_CLOSE_WRITE;
/// Events of names in a directory.
pub const NAMES: u64 = libc::FAN_CREATE | libc::FAN_DELETE | libc::FAN_MOVED_FROM | libc::FAN_MOVED_TO;
/// Events of attributes alone: mode, owner, times, link count, ACLs. A move sets the times of what is moved.
pub const ATTRIBUTES: u64 = libc::FAN_ATTRIB | libc::FAN_MOVE_SELF;
/// The largest `struct file_handle`, in words, because it starts with one.
const WORDS: usize = (8 + MAX_BYTES as usize) / 4;
/// The most bytes of a handle.
const MAX_BYTES: u32 = libc::MAX_HANDLE_SZ as u32;

/// How events identify their file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentifyBy {
    /// By handle, and names by their directory's handle (`FAN_REPORT_DFID_NAME`, Linux 5.9), so that changes of names and
    /// attributes are reported, too.
    HandleAndName,
    /// By handle (`FAN_REPORT_FID`, Linux 5.1). The file system must have handles and one number. A subvolume of btrfs has
    /// another number than its file system, so the kernel refuses the mark with EXDEV (fanotify_mark(2)).
    Handle,
    /// By an open descriptor, on any file system. A truncate(2) without an open file is not reported: it has no path.
    Descriptor,
}

/// A group with one mark, on a whole file system.
#[derive(Debug)]
pub struct Group {
    events: OwnedFd,
    /// A file there, which open_by_handle_at(2) needs.
    dir: OwnedFd,
    /// The device of all files there, and where their handles have the inode number; `None`: not known.
    layout: Option<(u64, Layout)>,
}

impl Group {
    /// Marks the file system of `dir`.
    ///
    /// # Errors
    /// Those of the kernel, with the name of the call: not permitted without `CAP_SYS_ADMIN`.
    pub fn new(dir: BorrowedFd<'_>, by: IdentifyBy) -> io::Result<Self> {
        // open_by_handle_at(2) refuses an O_PATH descriptor.
        let dir = openat(dir, c".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        if by != IdentifyBy::Descriptor {
            handles_can_be_opened(dir.as_fd())?;
        }
        let events = init(by).map_err(|e| of_call("fanotify_init", &e))?;
        mark(events.as_fd(), dir.as_fd(), by).map_err(|e| of_call("fanotify_mark", &e))?;
        let layout = Layout::of(fstatfs(&dir)?.f_type as u32);
        let layout =
            layout.map(|layout| Ok::<_, io::Error>((identity(dir.as_fd())?.0, layout))).transpose()?;
        Ok(Self { events, dir, layout })
    }

    /// A file of the watched file system.
    pub fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// Readable if there are events.
    pub fn events(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    /// The device and inode number of the file with this `struct file_handle`. `None`: it does not exist any more; where the
    /// handle has the number, that is not checked.
    ///
    /// # Errors
    /// Those of open_by_handle_at(2) or statx(2).
    pub fn resolve(&self, handle: &[u8]) -> io::Result<Option<(u64, u64)>> {
        let in_handle = self.layout.and_then(|(dev, layout)| Some((dev, layout.inode(handle)?)));
        if in_handle.is_some() {
            return Ok(in_handle);
        }
        match open(self.dir.as_fd(), handle) {
            Ok(file) => identity(file.as_fd()).map(Some),
            Err(e) if e.raw_os_error() == Some(libc::ESTALE) => Ok(None),
            Err(e) => Err(e),
        }
    }
}

/// The device and inode number of an open file.
///
/// # Errors
/// Those of statx(2).
pub fn identity(file: BorrowedFd<'_>) -> io::Result<(u64, u64)> {
    let s = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::INO)?;
    Ok((rustix::fs::makedev(s.stx_dev_major, s.stx_dev_minor), s.stx_ino))
}

/// Takes ownership of a descriptor that came with an event.
#[expect(unsafe_code, reason = "the kernel context a number over")]
pub fn adopt(fd: i32) -> OwnedFd {
    // SAFETY: read(2) of a fanotify group made this descriptor for its reader, and each event is adopted once.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

fn of_call(call: &str, e: &io::Error) -> io::Error {
    io::Error::new(e.kind(), format!("{call}: {e}"))
}

fn answered(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[expect(unsafe_code, reason = "rustix has no fanotify_init(2)")]
fn init(by: IdentifyBy) -> io::Result<OwnedFd> {
    let by = match by {
        IdentifyBy::HandleAndName => libc::FAN_REPORT_FID | libc::FAN_REPORT_DFID_NAME,
        IdentifyBy::Handle => libc::FAN_REPORT_FID,
        IdentifyBy::Descriptor => 0,
    };
    let flags = libc::FAN_CLASS_NOTIF | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK | by;
    // Only regular files and directories have such events, so no pipe is opened (`fanotify_group_event_mask` in
    // fs/notify/fanotify/fanotify.c). O_NONBLOCK: a file may have a lease.
    let opened = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_LARGEFILE;
    // SAFETY: no memory is passed; the returned descriptor is new.
    unsafe { Ok(OwnedFd::from_raw_fd(answered(libc::fanotify_init(flags, opened as libc::c_uint))?)) }
}

#[expect(unsafe_code, reason = "rustix has no fanotify_mark(2)")]
fn mark(group: BorrowedFd<'_>, dir: BorrowedFd<'_>, by: IdentifyBy) -> io::Result<()> {
    let flags = libc::FAN_MARK_ADD | libc::FAN_MARK_FILESYSTEM;
    let with_names = by == IdentifyBy::HandleAndName;
    let events = if with_names { CONTENT | NAMES | ATTRIBUTES | libc::FAN_ONDIR } else { CONTENT };
    // SAFETY: the path is a static string; the rest are numbers.
    let marked =
        unsafe { libc::fanotify_mark(group.as_raw_fd(), flags, events, dir.as_raw_fd(), c".".as_ptr()) };
    answered(marked).map(drop)
}

/// A group may exist without the right to open by handles (`CAP_DAC_READ_SEARCH`); then its events would be useless.
fn handles_can_be_opened(dir: BorrowedFd<'_>) -> io::Result<()> {
    let handle = handle_of(dir).map_err(|e| of_call("name_to_handle_at", &e))?;
    open(dir, &handle).map(drop).map_err(|e| of_call("open_by_handle_at", &e))
}

#[expect(unsafe_code, reason = "rustix has no name_to_handle_at(2)")]
fn handle_of(dir: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    let mut words = [0u32; WORDS];
    words[0] = MAX_BYTES;
    let mut mount = 0;
    // SAFETY: the array is a `struct file_handle` with room for the bytes that its first word gives.
    let made = unsafe {
        let handle = words.as_mut_ptr().cast();
        libc::name_to_handle_at(dir.as_raw_fd(), c".".as_ptr(), handle, &raw mut mount, 0)
    };
    answered(made)?;
    let len = 8 + words[0] as usize;
    Ok(words.iter().flat_map(|w| w.to_ne_bytes()).take(len).collect())
}

#[expect(unsafe_code, reason = "rustix has no open_by_handle_at(2)")]
fn open(mount: BorrowedFd<'_>, handle: &[u8]) -> io::Result<OwnedFd> {
    let mut words = [0u32; WORDS];
    if handle.len() < 8 || handle.len() > size_of_val(&words) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (word, bytes) in words.iter_mut().zip(handle.chunks(4)) {
        let mut four = [0; 4];
        four[..bytes.len()].copy_from_slice(bytes);
        *word = u32::from_ne_bytes(four);
    }
    words[0] = words[0].min(MAX_BYTES);
    // SAFETY: the array is a `struct file_handle` with room for the bytes that its first word gives; the returned descriptor
    // is new.
    unsafe {
        let flags = libc::O_PATH | libc::O_CLOEXEC;
        let fd = libc::open_by_handle_at(mount.as_raw_fd(), words.as_mut_ptr().cast(), flags);
        Ok(OwnedFd::from_raw_fd(answered(fd)?))
    }
}
