//! The content and its images of file systems.

use std::path::PathBuf;

use eke_model::units::{Bytes, MIB};
use serde::{Deserialize, Serialize};

use super::classes::{self, FileSpec};

/// The file system of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileSystem {
    /// ext4 without journal: a read-only mount writes nothing.
    Ext4,
    /// btrfs with `compress=zstd`, level 3.
    Btrfs,
    /// EROFS with LZ4HC in clusters of 64 KiB.
    Erofs,
}

impl FileSystem {
    /// The name for mount(2).
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Btrfs => "btrfs",
            Self::Erofs => "erofs",
        }
    }

    /// The most bytes that its image needs on the disk, for `bytes` bytes of files.
    pub fn most(self, bytes: u64) -> u64 {
        match self {
            Self::Ext4 => bytes + bytes / 16 + 64 * MIB,
            Self::Btrfs => bytes + bytes / 16 + 512 * MIB,
            Self::Erofs => bytes + bytes / 64 + MIB,
        }
    }
}

/// The files of the content, and their properties.
#[derive(Debug, Clone, PartialEq)]
pub struct Content {
    /// The files.
    pub files: Vec<FileSpec>,
    /// The properties of their bytes.
    pub properties: Properties,
    /// The path of the images without their ending.
    pub(super) stem: PathBuf,
}

/// Properties of the bytes, measured when they are made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Properties {
    /// The compression ratio of LZ4 in blocks of 64 KiB.
    pub ratio: f64,
    /// The hash of each file.
    pub hashes: Vec<u64>,
    /// The corpus that they were cut from.
    pub corpus: String,
}

impl Content {
    /// The path of the image with this file system.
    pub fn image(&self, fs: FileSystem) -> PathBuf {
        self.stem.with_extension(fs.name())
    }

    /// The space that the image with this file system uses on the disk.
    pub fn taken(&self, fs: FileSystem) -> Option<Bytes> {
        use std::os::unix::fs::MetadataExt;
        self.image(fs).metadata().ok().map(|meta| Bytes(meta.blocks() * 512))
    }

    /// The total bytes of its files.
    pub fn total(&self) -> u64 {
        classes::total(&self.files)
    }

    /// The path of the stored properties.
    pub(super) fn list(&self) -> PathBuf {
        self.stem.with_extension("json")
    }
}
