//! Listing directories.

use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex};

use fuser::{FileHandle, FileType, FopenFlags};
use rustix::fs::{OFlags, RawDir, Statx, fdatasync, fsync};
use rustix::io::Errno;

use super::attributes::kind;
use super::bare::{dots, unserved};
use super::listings::Listing;
use super::{Caller, FoundNode, Fs};
use crate::backing::at;
use crate::node::{Access, Node};
use crate::sync::lock;

/// The buffer of getdents64(2), in bytes: about as much as one reply takes.
const BUFFER: usize = 8192;

/// An entry of a directory.
#[derive(Debug, Clone, Copy)]
pub struct ListedEntry<'a> {
    /// Its name.
    pub name: &'a OsStr,
    /// The backing inode's number.
    pub ino: u64,
    /// Its type.
    pub kind: FileType,
    /// The position of the next entry.
    pub next: u64,
    /// True if its attributes are not to be believed: it is on another mount that is not served, or a mount point.
    pub foreign: bool,
}

impl ListedEntry<'_> {
    fn is_dots(&self) -> bool {
        matches!(self.name.as_bytes(), b"." | b"..")
    }
}

impl Fs {
    /// Opens a directory. The kernel may keep its list while changes of names are reported.
    ///
    /// # Errors
    /// ESTALE.
    pub fn opendir(&self, number: u64) -> io::Result<(FileHandle, FopenFlags)> {
        let node = self.nodes.get(number)?;
        if self.is_remote {
            self.at(number, |node| self.still_exists(node))?;
        }
        let keeps = self.lifetimes.keeps_list(node.opened_at());
        self.nodes.opened(&node, Access::Read)?;
        let keep = if keeps { FopenFlags::FOPEN_KEEP_CACHE } else { FopenFlags::empty() };
        let how = if self.lifetimes.are_reported() { keep | FopenFlags::FOPEN_CACHE_DIR } else { keep };
        Ok((self.listings.another(), how))
    }

    /// As NFS asks at each open: a list has no second walk that would find a directory in the place of a removed one.
    fn still_exists(&self, node: &Arc<Node>) -> io::Result<()> {
        let is_stale = at::is_stale(self.nodes.path(node)?);
        if is_stale { Err(Errno::STALE.into()) } else { Ok(()) }
    }

    /// Records that a directory was closed.
    pub fn releasedir(&self, caller: &Caller, number: u64, handle: FileHandle) {
        self.listings.release(handle);
        if let Ok(node) = self.nodes.get(number) {
            self.nodes.released(&node, Access::Read, caller.resent);
        }
    }

    /// Lists entries from `offset` on, until `take` returns true: its buffer is full.
    ///
    /// # Errors
    /// Those of getdents64(2).
    pub fn readdir(
        &self,
        number: u64,
        handle: FileHandle,
        offset: u64,
        mut take: impl FnMut(&ListedEntry<'_>) -> bool,
    ) -> io::Result<()> {
        let listing = self.listings.of(handle, self.path(number)?, offset)?;
        list(&listing, offset, |dir, listed| {
            let kind = listed.kind.unwrap_or_else(|| kind_of(dir, listed.name));
            take(&ListedEntry { name: listed.name, ino: listed.ino, kind, next: listed.next, foreign: false })
        })
    }

    /// The same with attributes. Each entry taken counts as one more lookup by the kernel, except `.` and `..`. What `ask` returns for
    /// a name lives while its file system is asked. Without that, the entry is one without attributes.
    ///
    /// # Errors
    /// Those of getdents64(2).
    pub fn readdirplus<A>(
        &self,
        number: u64,
        handle: FileHandle,
        offset: u64,
        ask: impl Fn(&OsStr) -> Option<A>,
        mut take: impl FnMut(&ListedEntry<'_>, &FoundNode) -> bool,
    ) -> io::Result<()> {
        let listing = self.listings.of(handle, self.path(number)?, offset)?;
        list(&listing, offset, |dir, raw| {
            let kind = raw.kind.unwrap_or(FileType::RegularFile);
            let mut listed =
                ListedEntry { name: raw.name, ino: raw.ino, kind, next: raw.next, foreign: false };
            if listed.is_dots() {
                return take(&listed, &dots(listed.ino));
            }
            listed.foreign = self.nodes.is_mount_point(number, listed.name);
            let statx = match self.stat_listed(dir, &listed, &ask) {
                // It was removed between the two calls.
                Err(e) if e.kind() == io::ErrorKind::NotFound => return false,
                Ok(statx) => statx,
                Err(_) => None,
            };
            // The kernel will look it up, and that error gives the reason.
            let statx = statx.filter(|statx| self.nodes.may_serve(statx).is_ok());
            let found = statx.and_then(|statx| self.learned(number, listed.name, &statx).ok());
            let Some(found) = found else {
                listed.foreign = true;
                return take(&listed, &unserved(kind));
            };
            let full = take(&listed, &found);
            if full {
                self.forget(found.attr.ino.0, 1);
            }
            full
        })
    }

    /// `None`: it must not be asked for now.
    fn stat_listed<A>(
        &self,
        dir: &OwnedFd,
        listed: &ListedEntry<'_>,
        ask: impl Fn(&OsStr) -> Option<A>,
    ) -> io::Result<Option<Statx>> {
        let Some(_asks) = ask(listed.name) else { return Ok(None) };
        let stat = if listed.foreign { at::stat_listed_unasked } else { at::stat_listed };
        Ok(Some(stat(dir, listed.name)?).filter(|statx| !at::waits_for_mount(statx)))
    }

    /// Writes the directory to the backing disk.
    ///
    /// # Errors
    /// Those of fsync(2).
    pub fn fsyncdir(&self, number: u64, data_only: bool) -> io::Result<()> {
        let dir = at::reopen(self.path(number)?.as_fd(), OFlags::RDONLY | OFlags::DIRECTORY)?;
        if data_only {
            fdatasync(dir)?
        } else {
            fsync(dir)?
        }
        Ok(())
    }
}

struct RawEntry<'a> {
    name: &'a OsStr,
    ino: u64,
    kind: Option<FileType>,
    next: u64,
}

fn list(
    listing: &Mutex<Listing>,
    offset: u64,
    mut take: impl FnMut(&OwnedFd, &RawEntry<'_>) -> bool,
) -> io::Result<()> {
    let mut listing = lock(listing);
    listing.go_to(offset)?;
    let mut at = listing.at.take();
    let mut buffer = [MaybeUninit::uninit(); BUFFER];
    let mut entries = RawDir::new(&listing.dir, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let kind = match entry.file_type() {
            rustix::fs::FileType::Unknown => None,
            known => Some(kind(known)),
        };
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        let next = entry.next_entry_cookie();
        if take(&listing.dir, &RawEntry { name, ino: entry.ino(), kind, next }) {
            // The descriptor is behind the whole buffer.
            return Ok(());
        }
        at = Some(next);
    }
    listing.at = at;
    Ok(())
}

fn kind_of(dir: &OwnedFd, name: &OsStr) -> FileType {
    let mode = at::stat_at(dir, name).map_or(0, |s| s.stx_mode);
    kind(rustix::fs::FileType::from_raw_mode(mode.into()))
}
