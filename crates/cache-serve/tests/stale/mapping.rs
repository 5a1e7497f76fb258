//! A shared mapping of a file.

#![allow(unsafe_code, reason = "test code: mmap(2) has no safe wrapper")]

use std::fs::File;
use std::os::fd::AsRawFd;

/// It stays when the file is closed.
pub struct Mapping {
    address: *mut libc::c_void,
    len: usize,
}

impl Mapping {
    pub fn shared(file: &File, len: usize) -> Self {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses a new place.
        let address =
            unsafe { libc::mmap(std::ptr::null_mut(), len, rights, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        assert_ne!(address, libc::MAP_FAILED);
        Self { address, len }
    }

    /// Stores this byte to the first `len` ones.
    pub fn fill(&mut self, len: usize, byte: u8) {
        assert!(len <= self.len);
        // SAFETY: so much of it is mapped to write, and nobody has a reference into it.
        unsafe { self.address.cast::<u8>().write_bytes(byte, len) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped by us, and nobody has a pointer into it.
        unsafe { libc::munmap(self.address, self.len) };
    }
}
