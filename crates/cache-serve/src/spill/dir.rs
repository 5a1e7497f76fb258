//! The directory for evicted blocks: content of files, so it is its user's alone, and no link leads out of it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use eke_cache_mounts::spill::SpillSettings;
use eke_cache_spill::{DiskFile, Medium, Room, SEGMENT, decide};
use eke_linux::magic::IN_MEMORY;
use eke_linux::parse::mountinfo;
use eke_model::units::Bytes;
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, flock, fstat, fstatfs, fsync, openat, renameat, unlinkat,
};
use rustix::io::Errno;

use super::error::{SpillError, failed};
use crate::mount::Checked;
use crate::mount::check::{directory, inside, mount_of};

const BLOCKS: &str = "eke-cache.blocks";
const INDEX: &str = "eke-cache.index";
const NEW_INDEX: &str = "eke-cache.index.new";

/// A directory for evicted blocks, with its file of blocks. Nobody else uses it as long as that is open.
#[derive(Debug)]
pub struct SpillDir {
    dir: OwnedFd,
    blocks: File,
    /// For messages.
    path: PathBuf,
    /// The most bytes there.
    pub size: Bytes,
    /// The most bytes written in a day.
    pub day: Bytes,
}

impl SpillDir {
    /// Checks, opens and locks it, before the mount, which may cover it.
    ///
    /// # Errors
    /// Why it cannot be used, and what to do.
    pub fn open(settings: &SpillSettings, checked: &Checked) -> Result<Self, SpillError> {
        let path = settings.dir.clone();
        let failed = |e: Errno| SpillError::Failed { path: path.clone(), source: e.into() };
        let found = directory(&path).map_err(SpillError::Open)?;
        check_place(&found, &path, checked)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = openat(&found, c".", flags, Mode::empty()).map_err(failed)?;
        check_owner(&dir, &path)?;
        let blocks = open_blocks(&dir).map_err(failed)?;
        match flock(&blocks, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Err(SpillError::InUse { path }),
            locked => locked.map_err(failed)?,
        }
        match limits(settings, &blocks) {
            Ok((size, day)) => Ok(Self { dir, blocks, path, size, day }),
            Err(source) => Err(SpillError::Failed { path, source }),
        }
    }

    /// The file of blocks, for one worker.
    ///
    /// # Errors
    /// No descriptor is free.
    pub fn medium(&self) -> io::Result<DiskFile> {
        Ok(DiskFile::new(self.blocks.try_clone()?))
    }

    /// Reads the index and removes it. `None`: there is none, or it has more than `most` bytes.
    ///
    /// # Errors
    /// A sentence: what was tried, on what, and the kernel's answer. Then it must not be used.
    pub fn take_index(&self, most: u64) -> Result<Option<Vec<u8>>, String> {
        let taken = self.read_index(most).and_then(|bytes| self.remove_index().map(|()| bytes));
        taken.map_err(|e| failed("read", &self.path.join(INDEX), &e))
    }

    fn read_index(&self, most: u64) -> io::Result<Option<Vec<u8>>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match openat(&self.dir, INDEX, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            file => File::from(file?),
        };
        let (len, mut bytes) = (file.metadata()?.len(), Vec::new());
        let fits = len <= most && bytes.try_reserve_exact(usize::try_from(len).unwrap_or(usize::MAX)).is_ok();
        if !fits {
            return Ok(None);
        }
        file.take(len).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    fn remove_index(&self) -> io::Result<()> {
        match unlinkat(&self.dir, INDEX, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            // After a power cut, too, it must not be there again.
            removed => Ok(removed.and_then(|()| fsync(&self.dir))?),
        }
    }

    /// Writes the index: after a crash there is all of it or none.
    ///
    /// # Errors
    /// A sentence: what was tried, on what, and the kernel's answer.
    pub fn write_index(&self, bytes: &[u8]) -> Result<(), String> {
        let written = self.replace_index(bytes);
        if written.is_err() {
            let _ = unlinkat(&self.dir, NEW_INDEX, AtFlags::empty());
        }
        written.map_err(|e| failed("write", &self.path.join(INDEX), &e))
    }

    fn replace_index(&self, bytes: &[u8]) -> io::Result<()> {
        // Left by a process that was killed.
        let _ = unlinkat(&self.dir, NEW_INDEX, AtFlags::empty());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.dir, NEW_INDEX, flags, Mode::RUSR | Mode::WUSR)?);
        file.write_all(bytes)?;
        file.sync_all()?;
        renameat(&self.dir, NEW_INDEX, &self.dir, INDEX)?;
        Ok(fsync(&self.dir)?)
    }
}

/// Refuses a place that gains nothing, or that the mount would serve.
fn check_place(found: &OwnedFd, path: &Path, checked: &Checked) -> Result<(), SpillError> {
    let failed = |e: io::Error| SpillError::Failed { path: path.to_owned(), source: e };
    for served in [&checked.dir, &checked.at] {
        let identity = |fd: &OwnedFd| fstat(fd).map(|stat| (stat.st_dev, stat.st_ino));
        let is_same = identity(found).and_then(|found| Ok(found == identity(served)?));
        if is_same.map_err(|e| failed(e.into()))? || inside(found, served).map_err(failed)? {
            return Err(SpillError::Inside { path: path.to_owned(), place: checked.place.clone() });
        }
    }
    if is_same_file_system(found, &checked.dir).map_err(failed)? {
        return Err(SpillError::SameDisk { path: path.to_owned() });
    }
    let kind = fstatfs(found).map_err(|e| failed(e.into()))?.f_type as u32;
    if IN_MEMORY.contains(&kind) { Err(SpillError::InMemory { path: path.to_owned() }) } else { Ok(()) }
}

/// By `st_dev`, and by the superblock's number in the list of mounts: subvolumes of Btrfs have an `st_dev` each.
fn is_same_file_system(one: &OwnedFd, other: &OwnedFd) -> io::Result<bool> {
    if fstat(one)?.st_dev == fstat(other)?.st_dev {
        return Ok(true);
    }
    let mounts = mountinfo::parse(&std::fs::read("/proc/self/mountinfo")?);
    let device = |fd| mount_of(fd).and_then(|id| mounts.iter().find(|m| m.id == id)).map(|m| &m.device);
    Ok(device(one).is_some_and(|found| Some(found) == device(other)))
}

/// Refuses a directory in which others can put files.
fn check_owner(dir: &OwnedFd, path: &Path) -> Result<(), SpillError> {
    let stat = fstat(dir).map_err(|e| SpillError::Failed { path: path.to_owned(), source: e.into() })?;
    let (path, uid) = (path.to_owned(), rustix::process::geteuid().as_raw());
    if stat.st_uid != uid {
        return Err(SpillError::NotOwn { path, owner: stat.st_uid, uid });
    }
    if stat.st_mode & 0o022 != 0 { Err(SpillError::Writable { path }) } else { Ok(()) }
}

/// The file of blocks, made if it is missing. Only its owner may have been able to read it.
fn open_blocks(dir: &OwnedFd) -> rustix::io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = openat(dir, BLOCKS, flags, Mode::RUSR | Mode::WUSR)?;
    let stat = fstat(&file)?;
    let is_own = stat.st_uid == rustix::process::geteuid().as_raw() && stat.st_mode & 0o077 == 0;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_nlink == 1;
    if is_own && is_file { Ok(File::from(file)) } else { Err(Errno::PERM) }
}

/// How much to use there. Gives back what is beyond that.
fn limits(settings: &SpillSettings, blocks: &File) -> io::Result<(Bytes, Bytes)> {
    let Room { free, all } = DiskFile::new(blocks.try_clone()?).room()?;
    let meta = blocks.metadata()?;
    let size = decide::size(settings.size, free, Bytes(meta.blocks() * 512));
    let most = (size.0 / SEGMENT as u64 + 1) * SEGMENT as u64;
    if meta.len() > most {
        blocks.set_len(most)?;
    }
    Ok((size, decide::day(settings.day, all)))
}
