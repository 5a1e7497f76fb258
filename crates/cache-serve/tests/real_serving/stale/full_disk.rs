//! A file system whose disk is smaller than the file system: later writeback by the kernel fails.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::mount::{UnmountFlags, unmount};

use crate::common::mount::{InMemory, run};

/// The programs that it needs.
pub const PROGRAMS: [&str; 3] = ["mkfs.ext4", "mount", "losetup"];

/// Drop unmounts it.
pub struct FullDisk {
    place: PathBuf,
    _memory: InMemory,
}

impl FullDisk {
    /// Mounts it in this directory: a file system of 64 MiB, of which 8 can be stored.
    pub fn new(dir: &Path) -> Self {
        let (memory, place) = (dir.join("memory"), dir.join("disk"));
        std::fs::create_dir(&memory).unwrap();
        std::fs::create_dir(&place).unwrap();
        let kept = InMemory::new(&memory, 8 << 10);
        let image = memory.join("image");
        File::create(&image).unwrap().set_len(64 << 20).unwrap();
        let (image, at) = (image.to_str().unwrap(), place.to_str().unwrap());
        run("mkfs.ext4", &["-q", "-F", "-O", "^has_journal", "-N", "64", image]);
        run("mount", &["-o", "loop", image, at]);
        Self { place, _memory: kept }
    }

    pub fn place(&self) -> &Path {
        &self.place
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        let _ = unmount(&self.place, UnmountFlags::DETACH);
    }
}
