//! A shared mapping of a file.

#![allow(unsafe_code, reason = "test code: mmap(2) has no safe wrapper")]

use std::fs::File;
use std::os::fd::AsRawFd;

/// Unmapped when dropped; it outlives the file's descriptor.
pub struct Mapping {
    address: *mut libc::c_void,
    len: usize,
}

impl Mapping {
    pub fn shared(file: &File, len: usize) -> Self {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses an unused address.
        let address =
            unsafe { libc::mmap(std::ptr::null_mut(), len, rights, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        assert_ne!(address, libc::MAP_FAILED);
        Self { address, len }
    }

    /// Stores this byte to the first `len` bytes.
    pub fn fill(&mut self, len: usize, byte: u8) {
        assert!(len <= self.len);
        // SAFETY: these bytes are mapped to write, and nobody has a reference to them.
        unsafe { self.address.cast::<u8>().write_bytes(byte, len) };
    }

    /// Stores this byte at `at`.
    pub fn put(&mut self, at: usize, byte: u8) {
        assert!(at < self.len);
        // SAFETY: as in `fill`.
        unsafe { self.address.cast::<u8>().add(at).write(byte) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `shared` made this mapping, and nobody has a pointer to it.
        unsafe { libc::munmap(self.address, self.len) };
    }
}
