//! What a launch touches.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::pages::Pages;

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory that was searched or listed. Reading its entries is what brings it into memory.
    Directory,
    /// The block device of a file system. Its pages are the file system's metadata: ext4 keeps inode tables, directories and extents in the device's
    /// page cache.
    Device,
}

/// Identifies one version of a file. If any field differs, it is another file and its learned pages are void. `dev` is compared only within a boot,
/// because device numbers change across boots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Stamp {
    /// `st_dev`; the device's own number for a block device.
    pub dev: u64,
    /// `st_ino`; 0 for a block device.
    pub ino: u64,
    /// `st_size` in bytes; 0 for directories and devices.
    pub size: u64,
    /// `st_mtime` in nanoseconds since 1970; 0 for directories and devices.
    pub mtime_ns: i64,
}

/// Whether eke reads a file of `owner` for a program that `user` starts: root's and the user's own. Every user could fill memory with the files of
/// others otherwise. System users are none of these: a service may run what anybody sends to it.
pub fn may_read_for(user: u32, owner: u32) -> bool {
    owner == 0 || owner == user
}

/// One file of a set, with its pages.
#[derive(Debug, Clone, PartialEq)]
pub struct Touched {
    /// Its path from the host's root.
    pub path: PathBuf,
    /// Its kind.
    pub kind: Kind,
    /// Identifies its version.
    pub stamp: Stamp,
    /// The pages that launches used; none for a directory.
    pub pages: Pages,
    /// The subset of `pages` that no launch has used since the file's last review.
    pub stale: Pages,
    /// The share of recent launches that used the file, 0 to 1.
    pub weight: f32,
}

/// The files that a launch touches, in the order of first use.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FileSet {
    /// Each file once.
    pub files: Vec<Touched>,
}

impl FileSet {
    /// Bytes of all pages.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|touched| touched.pages.bytes()).sum()
    }
}
