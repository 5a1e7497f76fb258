//! Files and directories that are warmed: found by paths below the backing directory, without links and without the kernel's lookups.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eke_cache_store::FileId;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, SeekFrom, openat2, seek};
use rustix::io::Errno;

use super::Fs;
use crate::backing::{File, at};
use crate::tier::{Tier, Warmed};

/// A regular file below the backing directory, open for reading.
#[derive(Debug)]
pub struct FileToWarm {
    /// Its id in the store.
    pub id: FileId,
    /// In bytes, when it was opened.
    pub size: u64,
    backing: File,
}

impl FileToWarm {
    /// Where the next data begins, from `at` on and at the begin of a block: at the file's end if only a hole follows, and at `at` if the file system
    /// knows no holes. A hole is read without the disk, and each of its blocks would take an entry of the store.
    pub fn data_from(&self, at: u64, block: u64) -> u64 {
        match seek(&self.backing, SeekFrom::Data(at)) {
            Ok(found) => (found / block * block).max(at).min(self.size),
            Err(Errno::NXIO) => self.size,
            Err(_) => at,
        }
    }
}

/// What a path leads to.
#[derive(Debug)]
pub enum ToWarm {
    /// A regular file.
    File(FileToWarm),
    /// A directory: its entries by name, in the order of their inodes, which is about that on the disk.
    Directory(Vec<OsString>),
    /// A link, a device or the like: nothing to read.
    Nothing,
}

impl Fs {
    /// Opens what `path`, relative to the backing directory, leads to. Follows no link, and opens no device.
    ///
    /// # Errors
    /// Those of openat2(2); EXDEV if it is on a mount that is not served; EWOULDBLOCK if another process has a lease on it.
    pub fn open_to_warm(&self, path: &Path) -> io::Result<ToWarm> {
        let found = self.path_below(path)?;
        let statx = at::stat(&found)?;
        self.nodes.may_serve(&statx)?;
        match FileType::from_raw_mode(statx.stx_mode.into()) {
            FileType::RegularFile => {
                let backing = File::new(at::reopen_at_once(found.as_fd(), OFlags::RDONLY)?);
                let id = self.tier.id(at::dev(&statx), statx.stx_ino);
                let stamp = self.new_stamp(&backing)?;
                self.tier.visited(id, stamp);
                Ok(ToWarm::File(FileToWarm { id, size: stamp.size, backing }))
            }
            FileType::Directory => Ok(ToWarm::Directory(entries(&found)?)),
            _ => Ok(ToWarm::Nothing),
        }
    }

    /// The kind and size of what `path` leads to, without opening it: `Some` bytes of a regular file, or a directory's entries.
    ///
    /// # Errors
    /// As [`Fs::open_to_warm`].
    pub fn survey(&self, path: &Path) -> io::Result<Surveyed> {
        let found = self.path_below(path)?;
        let statx = at::stat(&found)?;
        self.nodes.may_serve(&statx)?;
        Ok(match FileType::from_raw_mode(statx.stx_mode.into()) {
            FileType::RegularFile => Surveyed::File(statx.stx_size),
            FileType::Directory => Surveyed::Directory(entries(&found)?),
            _ => Surveyed::Nothing,
        })
    }

    pub(super) fn path_below(&self, path: &Path) -> io::Result<OwnedFd> {
        let root = self.nodes.path(&self.nodes.get(crate::node::ROOT)?)?;
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat2(&*root, path, flags, Mode::empty(), resolve)?)
    }

    /// Reads a part of the file into the store, see [`crate::tier::Tier::warm`].
    ///
    /// # Errors
    /// Those of the backing file.
    pub fn warm(&self, file: &FileToWarm, bytes: Range<u64>, stay: bool) -> io::Result<Warmed> {
        self.with_context(|context| self.tier.warm(context, (file.id, &file.backing), bytes, stay))
    }

    /// Notes the path of a file that has blocks in the store.
    pub fn note_path(&self, file: FileId, path: &Path) {
        self.known_paths.note(file, || Some(path.to_owned()));
    }

    /// The file's path below the backing directory, as far as it is known.
    pub fn path_of(&self, file: FileId) -> Option<PathBuf> {
        // On the root's device a file's id and its node's number are those of the inode.
        let by_node = || self.nodes.place_of(file.0).filter(|path| !path.as_os_str().is_empty());
        let is_inode = !crate::node::is_foreign(file.0);
        is_inode.then(by_node).flatten().or_else(|| self.known_paths.get(file))
    }

    /// Forgets the noted paths of all other files.
    pub fn retain_paths(&self, files: &HashSet<FileId>) {
        self.known_paths.retain(files);
    }

    /// The tier.
    pub fn tier(&self) -> &Tier {
        &self.tier
    }

    /// The tier, for another owner.
    pub fn tier_of(&self) -> Arc<Tier> {
        Arc::clone(&self.tier)
    }
}

/// What [`Fs::survey`] finds.
#[derive(Debug)]
pub enum Surveyed {
    /// A regular file of so many bytes.
    File(u64),
    /// A directory: its entries, in the order of their inodes.
    Directory(Vec<OsString>),
    /// Something else.
    Nothing,
}

/// A directory's entries, in the order of their inodes.
fn entries(dir: &OwnedFd) -> io::Result<Vec<OsString>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(at::link(dir.as_fd()))? {
        let entry = entry?;
        entries.push((entry.ino(), entry.file_name()));
    }
    entries.sort_unstable();
    Ok(entries.into_iter().map(|(_, name)| name).collect())
}
