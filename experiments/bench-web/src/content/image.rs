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

    /// The most bytes that its image with these files needs on the disk: whole blocks, an inode for each file, and tables.
    pub fn most(self, files: &[FileSpec]) -> u64 {
        let bytes: u64 = files.iter().map(|file| file.bytes.next_multiple_of(BLOCK)).sum();
        let inodes = inodes(files) * INODE;
        match self {
            Self::Ext4 => bytes + bytes / 16 + inodes + 64 * MIB,
            Self::Btrfs => bytes + bytes / 16 + 2 * inodes + 512 * MIB,
            Self::Erofs => bytes + bytes / 64 + inodes + MIB,
        }
    }
}

/// A block of the file systems, in bytes.
const BLOCK: u64 = 4096;
/// An inode of ext4 and of btrfs with its names, in bytes: at most 256 in EROFS.
const INODE: u64 = 256;

/// So many inodes the ext4 image gets: directories have few files.
pub(super) fn inodes(files: &[FileSpec]) -> u64 {
    files.len() as u64 * 2 + 1024
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

#[cfg(test)]
mod tests {
    use super::*;

    /// 8 bytes of inode table for each 64 of a file: more than what is spare for other tables.
    #[test]
    fn many_small_files_need_whole_blocks_and_their_inodes() {
        let files = vec![FileSpec { path: "small".to_owned(), bytes: 3000 }; 100_000];
        let least = 100_000 * (4096 + 512);
        for fs in [FileSystem::Ext4, FileSystem::Btrfs, FileSystem::Erofs] {
            assert!(fs.most(&files) > least, "{fs:?}");
        }
    }
}
