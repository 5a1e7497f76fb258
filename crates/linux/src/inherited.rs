//! Descriptors that a process has from whoever started it.

use std::os::fd::BorrowedFd;

use rustix::io::{FdFlags, fcntl_setfd};

/// The first descriptor after standard input, output and error.
const FIRST: i32 = 3;

/// Closes all descriptors but the standard ones in programs that this process starts from now on. A program that goes on in the background would otherwise
/// keep the lock, the pipe or the mounted file of the shell that started `eke`.
#[expect(unsafe_code, reason = "descriptors that this process did not open have no owner in it")]
pub fn keep_from_children() {
    let Ok(all) = std::fs::read_dir("/proc/self/fd") else { return };
    let open = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for fd in open.filter(|fd| *fd >= FIRST) {
        // SAFETY: the descriptor is only used for this call, which fails with EBADF if it was closed meanwhile, as that of the listing is.
        let _ = fcntl_setfd(unsafe { BorrowedFd::borrow_raw(fd) }, FdFlags::CLOEXEC);
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::{dup, fcntl_getfd};

    use super::*;

    #[test]
    fn a_descriptor_that_children_would_get_is_kept_from_them() {
        let file = std::fs::File::open("/proc/self/stat").unwrap();
        let copy = dup(&file).unwrap();
        assert!(!fcntl_getfd(&copy).unwrap().contains(FdFlags::CLOEXEC));
        keep_from_children();
        assert!(fcntl_getfd(&copy).unwrap().contains(FdFlags::CLOEXEC));
    }
}
