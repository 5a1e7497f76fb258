//! A dictionary for zstd, trained on this machine's own pages, for the parameter `dict=` of zram (Linux 6.12). A page of 4 KiB is too short for zstd to
//! learn much from; a dictionary has what pages have in common. In the kernel's own test the pool became 7.6 % smaller (commit 6a559ecd6e7e).

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

use eke_apply::zram::kept_dictionary;
use eke_linux::Root;
use rustix::fs::{MemfdFlags, Mode, OFlags};
use zstd::zstd_safe::train_from_buffer;

use super::buffer::{Buffer, LockedFile};
use crate::error::{Error, Result};

/// Its size. On pages of compilers 16 KiB gained 6 %, 64 KiB 7.4 % and 110 KiB 8 %; the kernel holds it once for a device.
const BYTES: usize = 64 << 10;
/// The most to train on: 8 MiB gained 0.2 % more in twice the time (0.3 s).
const MOST_BYTES: usize = 4 << 20;
/// With fewer pages there is none.
pub(crate) const LEAST_PAGES: usize = 64;

/// The most pages of this size to train on.
pub(crate) fn most_pages(page_bytes: usize) -> usize {
    MOST_BYTES / page_bytes
}

/// A dictionary in memory of this process, which the kernel reads by a path when a device gets it. It has parts of other programs' pages: it is locked
/// in RAM if the process's limit allows it, is on no disk, and goes when the process ends. The kernel keeps a copy for as long as the device exists.
#[derive(Debug, Clone)]
pub struct Dictionary {
    file: Arc<LockedFile>,
}

impl PartialEq for Dictionary {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.file, &other.file)
    }
}

impl Dictionary {
    /// Trains it on pages; `None` if they are too few, or have nothing in common.
    ///
    /// # Errors
    /// As [`Dictionary::of`].
    pub(crate) fn train(pages: &Buffer, count: usize) -> Result<Option<Self>> {
        if count < LEAST_PAGES {
            return Ok(None);
        }
        let page_bytes = rustix::param::page_size();
        let mut trained = Buffer::new(BYTES / page_bytes)?;
        let samples = pages.bytes().get(..count * page_bytes).unwrap_or_default();
        match train_from_buffer(trained.bytes_mut(), samples, &vec![page_bytes; count]) {
            Ok(bytes) => Self::of(trained.bytes().get(..bytes).unwrap_or_default()).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// A dictionary with this content.
    ///
    /// # Errors
    /// There is no memory, or this process may have no file in memory (memfd_create(2), Linux 3.17).
    pub fn of(content: &[u8]) -> Result<Self> {
        let made = rustix::fs::memfd_create("eke-dictionary", MemfdFlags::CLOEXEC);
        let failed =
            |e: std::io::Error| Error::io("hold a dictionary in", Path::new("memfd:eke-dictionary"), e);
        let mut file = File::from(made.map_err(|e| failed(e.into()))?);
        file.write_all(content).map_err(failed)?;
        // The kernel does not read a file that somebody has open for writing (ETXTBSY).
        let readable = rustix::fs::open(path(&file), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let readable = File::from(readable.map_err(|e| failed(e.into()))?);
        Ok(Self { file: Arc::new(LockedFile::new(readable, content.len())) })
    }

    /// The one that was kept for a device, if it still is.
    ///
    /// # Errors
    /// It cannot be opened: it is gone, or none was kept because `/run` is on a disk.
    pub fn kept(root: &Root, device: &str) -> Result<Self> {
        let path = root.path(kept_dictionary(device));
        let failed = |e: std::io::Error| Error::io("open", &path, e);
        let file = File::open(&path).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        Ok(Self { file: Arc::new(LockedFile::new(file, usize::try_from(len).unwrap_or_default())) })
    }

    /// Its path, for the kernel and while this process has it.
    pub fn path(&self) -> String {
        path(self.file.file())
    }
}

fn path(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages that repeat words of a small vocabulary in other orders.
    fn pages(count: usize) -> Buffer {
        let mut pages = Buffer::new(count).unwrap();
        let mut state = 1u32;
        for index in 0..count {
            for word in pages.page_mut(index).chunks_mut(8) {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let text = format!("w{:06}x", (state >> 16) % 512);
                word.copy_from_slice(&text.as_bytes()[..word.len()]);
            }
        }
        pages
    }

    #[test]
    fn it_makes_other_pages_of_the_kind_smaller_and_is_read_only() {
        let known = pages(256);
        let dictionary = Dictionary::train(&known, 128).unwrap().unwrap();
        let content = std::fs::read(dictionary.path()).unwrap();
        let other = known.page(200);
        let mut with = zstd::bulk::Compressor::with_dictionary(3, &content).unwrap();
        let mut without = zstd::bulk::Compressor::new(3).unwrap();
        let (with, without) = (with.compress(other).unwrap().len(), without.compress(other).unwrap().len());
        assert!(with < without, "{with} bytes with it, {without} without");
        let mut file = dictionary.file.file();
        assert!(file.write_all(b"x").is_err());
    }

    /// Its time goes with the bytes.
    #[test]
    fn fewer_large_pages_are_trained_on() {
        assert_eq!([4 << 10, 16 << 10, 64 << 10].map(most_pages), [1024, 256, LEAST_PAGES]);
    }

    #[test]
    fn few_pages_have_none() {
        assert_eq!(Dictionary::train(&pages(LEAST_PAGES), LEAST_PAGES - 1).unwrap(), None);
        let zeros = Buffer::new(LEAST_PAGES).unwrap();
        assert!(Dictionary::train(&zeros, LEAST_PAGES).is_ok(), "nothing in common is no error");
    }
}
