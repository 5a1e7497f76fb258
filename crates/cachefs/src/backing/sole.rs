//! Whether a file is open elsewhere on this machine. A mapping (mmap) keeps the open file that it was made from, also after
//! close(2).
//!
//! The kernel gives a write lease (fcntl(2), `F_SETLEASE`) only for a file that nobody else has open, and a read lease only for one that nobody has
//! open for writing. It is given back at once. An open by somebody else in that moment that conflicts with it waits, or gets EWOULDBLOCK with
//! `O_NONBLOCK`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `F_SETSIG`, `include/uapi/asm-generic/fcntl.h`.
const SET_SIGNAL: libc::c_int = 10;

/// True if this is the only open file description of the file. False also where the file system gives no leases. Call it as the
/// file's owner, or with `CAP_LEASE`.
pub fn is_sole(file: BorrowedFd<'_>) -> bool {
    leases(file, libc::F_WRLCK)
}

/// True if nobody has the file open for writing. `file` is open for reading only. False also where the file system gives no leases. Call it as
/// the file's owner, or with `CAP_LEASE`.
pub fn has_no_writer(file: BorrowedFd<'_>) -> bool {
    leases(file, libc::F_RDLCK)
}

fn leases(file: BorrowedFd<'_>, kind: libc::c_int) -> bool {
    // Of an open that waits the kernel informs the holder by SIGIO, which would end this process. This one is ignored.
    let leased = fcntl(file, SET_SIGNAL, libc::SIGURG).and_then(|()| fcntl(file, libc::F_SETLEASE, kind));
    leased.is_ok() && fcntl(file, libc::F_SETLEASE, libc::F_UNLCK).is_ok()
}

#[expect(unsafe_code, reason = "F_SETLEASE and F_SETSIG have no safe wrapper")]
fn fcntl(file: BorrowedFd<'_>, command: libc::c_int, argument: libc::c_int) -> io::Result<()> {
    // SAFETY: these commands take a number, and the descriptor is open while it is borrowed.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), command, argument) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_writer_is_seen_also_by_its_mapping() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let reader = File::open(file.path()).unwrap();
        let (writer, path) = file.into_parts();
        writer.set_len(4096).unwrap();
        let mapping = map(&writer);
        drop(writer);
        assert!(!has_no_writer(reader.as_fd()), "the mapping keeps it");
        unmap(mapping);
        let _another_reader = File::open(&path).unwrap();
        assert!(has_no_writer(reader.as_fd()));
    }

    #[expect(unsafe_code, reason = "mmap(2) has no safe wrapper")]
    fn map(file: &File) -> *mut std::ffi::c_void {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        // SAFETY: a new mapping, which nobody accesses.
        unsafe { mmap(std::ptr::null_mut(), 4096, ProtFlags::WRITE, MapFlags::SHARED, file, 0) }.unwrap()
    }

    #[expect(unsafe_code, reason = "munmap(2) has no safe wrapper")]
    fn unmap(at: *mut std::ffi::c_void) {
        // SAFETY: it is the whole mapping.
        unsafe { rustix::mm::munmap(at, 4096) }.unwrap();
    }

    #[test]
    fn a_file_is_sole_unless_it_is_open_once_more() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(is_sole(file.as_file().as_fd()));
        let reader = File::open(file.path()).unwrap();
        assert!(!is_sole(file.as_file().as_fd()) && !is_sole(reader.as_fd()));
        drop(reader);
        let copy = file.as_file().try_clone().unwrap();
        assert!(is_sole(copy.as_fd()), "the same description");
    }
}
