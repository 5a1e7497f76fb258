//! What a launch touches.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::pages::Pages;

/// What has the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory that was searched or listed: to look at it is to have it.
    Directory,
    /// The block device below a file system, whose pages are that one's metadata (inode tables, directories, extents: ext4 keeps them
    /// in the device's page cache).
    Device,
}

/// By what a file is known again. A file that differs in any of these is another one, and what was learned of it is void;
/// but `dev` is compared only within a boot, since device numbers are given anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Stamp {
    /// `st_dev`; of a block device its own number.
    pub dev: u64,
    /// `st_ino`; of a block device 0.
    pub ino: u64,
    /// `st_size` in bytes; 0 where it says nothing (directories, devices).
    pub size: u64,
    /// `st_mtime` in nanoseconds since 1970; 0 where it says nothing (directories, devices).
    pub mtime_ns: i64,
}

/// One file of a set.
#[derive(Debug, Clone, PartialEq)]
pub struct Touched {
    /// Where it is, from the host's root.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// By what it is known again.
    pub stamp: Stamp,
    /// The pages that were used; of a directory none.
    pub pages: Pages,
    /// Of these, those that no launch has used since the file was reviewed last.
    pub stale: Pages,
    /// The share of launches that used it, of late: 1 is all.
    pub weight: f32,
}

/// What a launch touches, in the order of first use.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FileSet {
    /// The files, each once.
    pub files: Vec<Touched>,
}

impl FileSet {
    /// Bytes of all pages.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|touched| touched.pages.bytes()).sum()
    }
}
