//! Opening, reading and writing regular files.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Instant, SystemTime};

use fuser::{FileHandle, FopenFlags, OpenFlags, WriteFlags};
use rustix::fs::{FileType, Mode, OFlags, fdatasync, fsync, openat};
use rustix::io::Errno;
use rustix::thread::CapabilitySet;

use super::caller::writes_back;
use super::handles::{OF_NODE, READER, description, is_past_store, of_file};
use super::{Caller, FoundNode, Fs, resent};
use crate::backing::{File, at};
use crate::node::{Access, Node, Writer, is_foreign};
use crate::rights;
use crate::tier::ready::Prepared;
use crate::tier::{Freshness, WritePosition};

fn access(flags: i32) -> Access {
    if flags & libc::O_ACCMODE == libc::O_RDONLY { Access::Read } else { Access::Write }
}

/// A read-only file needs no request at close(2).
fn fopen(access: Access, seen: Freshness) -> FopenFlags {
    let keep = if seen == Freshness::Unchanged { FopenFlags::FOPEN_KEEP_CACHE } else { FopenFlags::empty() };
    let quiet = if access == Access::Read { FopenFlags::FOPEN_NOFLUSH } else { FopenFlags::empty() };
    keep | quiet
}

impl Fs {
    /// Opens a file. The kernel may keep its pages if nobody changed it since it was last seen.
    ///
    /// # Errors
    /// Those of open(2); ESTALE.
    pub fn open(
        &self,
        caller: &Caller,
        number: u64,
        flags: OpenFlags,
    ) -> io::Result<(FileHandle, FopenFlags)> {
        self.opens.fetch_add(1, Relaxed);
        let node = self.nodes.get(number)?;
        let access = access(flags.0);
        // The kernel reached it by a name that it has not given up: in a directory that ignores case, by another spelling.
        if node.is_gone() && !node.is_open() {
            return Err(Errno::STALE.into());
        }
        if access == Access::Write {
            self.end_lingering(number);
        }
        self.nodes.opened(&node, access)?;
        let opened = self.open_now(caller, &node, flags);
        if opened.is_err() {
            self.nodes.released(&node, access, false);
        }
        self.nodes.lost_if_stale(&node, opened)
    }

    fn open_now(
        &self,
        caller: &Caller,
        node: &Arc<Node>,
        flags: OpenFlags,
    ) -> io::Result<(FileHandle, FopenFlags)> {
        let access = access(flags.0);
        let (file, first) = self.nodes.file(node, access)?;
        leaves_room(caller, access, &*file)?;
        if access == Access::Write {
            node.descriptors().stay_for(caller.uid);
        }
        may_write(&file, access == Access::Read || flags.0 & libc::O_APPEND != 0)?;
        may_map(&file, flags.0)?;
        self.may_follow(node.number, &file, flags.0)?;
        let stamp = if first { self.new_stamp(&file)? } else { file.fresh_stamp()? };
        let seen = self.tier.opened(self.id(node), stamp, || self.reporting(node, &file));
        if seen == Freshness::Changed {
            self.attributes_are_old(node.number);
        }
        if flags.0 & libc::O_TRUNC != 0 {
            self.truncate(caller, node.number, 0)?;
        }
        Ok((self.handle(access, &file, first), fopen(access, seen)))
    }

    /// The handle for an open. `first`: the backing file was opened for it.
    fn handle(&self, access: Access, file: &File, first: bool) -> FileHandle {
        match access {
            Access::Read => READER,
            Access::Write if first => OF_NODE,
            Access::Write => self.handles.another(file),
        }
    }

    /// Creates and opens a file. Never opens an existing one, because the kernel has not checked permissions for it.
    ///
    /// # Errors
    /// Those of open(2). If the file exists by now: EEXIST with `O_EXCL`, otherwise ESTALE, so that the kernel looks it up
    /// again, checks permissions and opens it.
    pub fn create(
        &self,
        caller: &Caller,
        parent: u64,
        name: &OsStr,
        mode: (u32, u32),
        flags: i32,
    ) -> io::Result<(FoundNode, FileHandle, FopenFlags)> {
        let dir = self.path(parent)?;
        let name = at::name(name)?;
        let access = access(flags);
        // Before there is a file: this number is the next one.
        leaves_room(caller, access, at::reopen(dir.as_fd(), OFlags::PATH)?)?;
        let fd = self.at(parent, |_| create(caller, &dir, name, mode, flags))?;
        let statx = at::stat(&fd)?;
        let node = self.nodes.learn(&statx, parent, name)?;
        self.nodes.opened(&node, access)?;
        let created = self.created(&node, access, File::new(fd));
        if access == Access::Write {
            node.descriptors().stay_for(caller.uid);
        }
        if created.is_err() {
            self.nodes.released(&node, access, false);
            self.forget(node.number, 1);
        }
        let (handle, seen) = created?;
        Ok((
            FoundNode { attr: super::attr_of(node.number, &statx), generation: node.generation },
            handle,
            fopen(access, seen),
        ))
    }

    fn created(&self, node: &Arc<Node>, access: Access, file: File) -> io::Result<(FileHandle, Freshness)> {
        let seen = self.tier.opened(self.id(node), self.new_stamp(&file)?, || self.reporting(node, &file));
        let writer = Writer { file: Arc::new(file), readable: true };
        let (file, first) = node.file(access, || Ok(writer))?;
        Ok((self.handle(access, &file, first), seen))
    }

    /// Reads, and passes the bytes to `take`; fewer than requested only at the end.
    ///
    /// # Errors
    /// Those of the backing file.
    pub fn read<T>(
        &self,
        number: u64,
        offset: u64,
        len: u32,
        take: impl FnOnce(&[u8]) -> T,
    ) -> io::Result<T> {
        self.read_node(&self.nodes.get(number)?, offset, len, None, take)
    }

    /// The same by node, with the blocks found for it, if they were looked up.
    pub(super) fn read_node<T>(
        &self,
        node: &Arc<Node>,
        offset: u64,
        len: u32,
        prepared: Option<Prepared<'_>>,
        take: impl FnOnce(&[u8]) -> T,
    ) -> io::Result<T> {
        let file = self.file(node, Access::Read)?;
        if prepared.is_none() {
            self.known_paths.note(self.id(node), || self.nodes.place_of(node.number));
        }
        self.with_context(|context| {
            let read = match prepared {
                Some(prepared) => self.tier.read_prepared(context, prepared, &file, offset, len as usize),
                None => self.tier.read(context, self.id(node), &file, offset, len as usize),
            };
            Ok(take(read?))
        })
    }

    /// Reads a file that the kernel may change without asking, so no stored block is used. Fewer bytes only at the end.
    ///
    /// # Errors
    /// Those of the backing file.
    pub fn read_past_store(&self, number: u64, offset: u64, len: u32) -> io::Result<Vec<u8>> {
        let file = self.file(&self.nodes.get(number)?, Access::Read)?;
        let mut bytes = vec![0; len as usize];
        let read = file.read_at(&mut bytes, offset)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Writes at `offset`, or at the backing file's end if it was opened with `O_APPEND`. Pages changed through a mapping
    /// (mmap) are always written at `offset`.
    ///
    /// # Errors
    /// Those of the backing file.
    pub fn write(
        &self,
        caller: &Caller,
        number: u64,
        offset: u64,
        data: &[u8],
        how: (WriteFlags, OpenFlags),
    ) -> io::Result<u32> {
        let node = self.nodes.get(number)?;
        let file = self.file(&node, Access::Write)?;
        let appends = how.1.0 & libc::O_APPEND != 0 && !how.0.contains(WriteFlags::FUSE_WRITE_CACHE);
        let done = if appends && caller.resent { resent::appended(&file, offset, data)? } else { 0 };
        let data = &data[done..];
        if done > 0 && data.is_empty() {
            return Ok(count(done));
        }
        may_write(&file, appends)?;
        let position = if appends { WritePosition::End } else { WritePosition::At(offset) };
        let write = |id| self.with_context(|context| self.tier.write(context, id, &file, position, data));
        let put = || self.changing(&node, write);
        let kills = how.0.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
        let written = if how.0.contains(WriteFlags::FUSE_WRITE_CACHE) {
            writes_back(put)?
        } else {
            caller.changes(kills, put)?
        };
        let written = done + written;
        if appends {
            self.check_end(&node, &file, offset.saturating_add(written as u64))?;
        }
        Ok(count(written))
    }

    /// Writes the file to the backing disk after a write with `O_SYNC` or `O_DSYNC`, or such a flag of pwritev2(2), which the kernel
    /// sends as these. After a write through its pages the kernel requests that itself (`fuse_cache_write_iter` in fs/fuse/file.c).
    ///
    /// # Errors
    /// Those of fsync(2).
    pub fn sync_written(&self, number: u64, handle: FileHandle, flags: OpenFlags) -> io::Result<()> {
        if !is_past_store(handle) || flags.0 & libc::O_DSYNC == 0 {
            return Ok(());
        }
        self.fsync(number, handle, flags.0 & libc::O_SYNC != libc::O_SYNC)
    }

    /// The kernel has placed the appended bytes at the end that it knew. If that was not the end, its pages are wrong and
    /// must not be kept at the next open.
    fn check_end(&self, node: &Node, file: &File, end: u64) -> io::Result<()> {
        if file.stamp()?.size != end {
            self.tier.forget(self.id(node));
        }
        Ok(())
    }

    /// A descriptor of the file was closed. The backing file system may now report a failed write, as NFS does.
    ///
    /// # Errors
    /// Those of close(2).
    pub fn flush(&self, number: u64) -> io::Result<()> {
        let node = self.nodes.get(number)?;
        let Some(file) = node.descriptors().file(Access::Write) else { return Ok(()) };
        match rustix::io::fcntl_dupfd_cloexec(&*file, 0) {
            Ok(copy) => close(copy),
            // No descriptor is left: a failed write is reported by this, too.
            Err(Errno::MFILE) => sync(file.as_fd(), true),
            Err(e) => Err(e.into()),
        }
    }

    /// The last descriptor of this open was closed.
    pub fn release(&self, caller: &Caller, number: u64, handle: FileHandle, flags: OpenFlags) {
        self.handles.release(handle);
        if let Ok(node) = self.nodes.get(number) {
            if !caller.resent && self.lingers(&node, access(flags.0)) {
                return;
            }
            self.nodes.released(&node, access(flags.0), caller.resent);
            self.drop_if_gone(&node);
        }
        // A dead worker may have counted it already. A count that is one too high keeps the file open, and its path, until the mount
        // ends; one too low makes an open fail.
        if !caller.resent {
            self.release_passthrough(number);
        }
        let over = self.lingering.closed_again(number, Instant::now());
        over.into_iter().for_each(|node| self.close_lingering(&node));
    }

    /// True if the file that is being closed stays open for a moment.
    fn lingers(&self, node: &Arc<Node>, access: Access) -> bool {
        let may = self.lingering.is_on() && access == Access::Read && !is_foreign(node.number);
        // A file that lingers is open once more.
        if !may || node.is_gone() || node.opens() != 1 {
            return false;
        }
        // Without a descriptor the inode may go, and its number come back.
        if node.descriptors().file(Access::Read).is_none() {
            return false;
        }
        self.nodes.note_released(node);
        let mut ends = self.lingering.put(node.number, Arc::clone(node), Instant::now());
        // The kernel may have forgotten it meanwhile.
        if !self.nodes.get(node.number).is_ok_and(|known| Arc::ptr_eq(&known, node)) {
            ends.into_iter().for_each(|node| self.close_lingering(&node));
            ends = self.lingering.take(node.number);
        }
        ends.into_iter().for_each(|node| self.close_lingering(&node));
        true
    }

    /// Closes a file at once if it lingers.
    pub(super) fn end_lingering(&self, number: u64) {
        self.lingering.take(number).into_iter().for_each(|node| self.close_lingering(&node));
    }

    /// Closes the files that were closed some time ago. Call it every second.
    pub fn close_lingering_files(&self, now: Instant) {
        self.lingering.expired(now).into_iter().for_each(|node| self.close_lingering(&node));
    }

    fn close_lingering(&self, node: &Node) {
        self.nodes.closed(node, Access::Read, false);
        self.drop_if_gone(node);
        self.release_passthrough(node.number);
    }

    /// True if a program has it open. Not if it only lingers.
    pub fn is_in_use(&self, node: &Node) -> bool {
        node.opens() > u64::from(self.lingering.has(node.number))
    }

    fn drop_if_gone(&self, node: &Node) {
        if node.is_gone() && !node.is_open() {
            self.tier.forget(self.id(node));
        }
    }

    /// Last of a release, so that the next open finds the file closed here, too.
    fn release_passthrough(&self, number: u64) {
        if rights::as_root(CapabilitySet::empty()).is_ok() {
            self.passthrough.opens.release(number);
        }
    }

    /// Writes the file to the backing disk.
    ///
    /// # Errors
    /// Those of fsync(2).
    pub fn fsync(&self, number: u64, handle: FileHandle, data_only: bool) -> io::Result<()> {
        if let Some(own) = self.handles.get(handle) {
            return sync(own.as_fd(), data_only);
        }
        let node = self.nodes.get(number)?;
        let open = node.descriptors().file(Access::Write);
        let file = match open {
            Some(file) => file,
            None => self.file(&node, Access::Read)?,
        };
        if of_file(handle) == READER {
            return sync(description(file.as_fd())?.as_fd(), data_only);
        }
        sync(file.as_fd(), data_only)
    }
}

fn sync(file: BorrowedFd<'_>, data_only: bool) -> io::Result<()> {
    let done = if data_only { fdatasync(file) } else { fsync(file) };
    Ok(done?)
}

fn count(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// How often creation is tried while others create and remove the backing file. The kernel retries only once, and the
/// program would get an error that open(2) does not have.
const TRIES: usize = 64;

/// The end is the only place where this file may be written to, if it is of that kind. `at_end`: that is asked.
///
/// # Errors
/// EPERM.
fn may_write(file: &File, at_end: bool) -> io::Result<()> {
    if file.only_appends() && !at_end { Err(Errno::PERM.into()) } else { Ok(()) }
}

/// Who reads and writes by one descriptor may map the file and store anywhere. The kernel refuses that by a flag (`S_APPEND`) that a FUSE inode has not.
///
/// # Errors
/// EPERM.
fn may_map(file: &File, flags: i32) -> io::Result<()> {
    let maps = flags & libc::O_ACCMODE == libc::O_RDWR;
    if file.only_appends() && maps { Err(Errno::PERM.into()) } else { Ok(()) }
}

/// Descriptors of files that are written to stay, so users may not take the last of them.
///
/// # Errors
/// EMFILE: too many are in use.
fn leaves_room(caller: &Caller, access: Access, newest: impl AsFd) -> io::Result<()> {
    let may = access == Access::Read || caller.leaves_room(Ok::<_, Errno>(newest));
    if may { Ok(()) } else { Err(Errno::MFILE.into()) }
}

/// A file for writing is also opened for reading: see [`Writer`].
fn create(caller: &Caller, dir: &OwnedFd, name: &OsStr, mode: (u32, u32), flags: i32) -> io::Result<OwnedFd> {
    let exclusive = flags & libc::O_EXCL != 0;
    let how = rights_of(flags) | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let bits = Mode::from_raw_mode(mode.0 & 0o7777);
    let tries = if exclusive || caller.resent { 1 } else { TRIES };
    let make = || {
        let all = (0..tries).map(|_| openat(dir, name, how, bits));
        all.into_iter().find(|made| !matches!(made, Err(Errno::EXIST))).unwrap_or(Err(Errno::EXIST))
    };
    let made = caller.makes(dir, mode, || Ok(make()?));
    match made {
        Err(e) if e.raw_os_error() == Some(libc::EEXIST) => match made_before(caller, dir, name, flags) {
            Some(fd) => Ok(fd),
            None if exclusive => Err(e),
            None => Err(Errno::STALE.into()),
        },
        made => made,
    }
}

fn rights_of(flags: i32) -> OFlags {
    if access(flags) == Access::Read { OFlags::RDONLY } else { OFlags::RDWR }
}

/// The file that a dead worker created for the same request.
fn made_before(caller: &Caller, dir: &OwnedFd, name: &OsStr, flags: i32) -> Option<OwnedFd> {
    let path = at::path(dir, name).ok().filter(|_| caller.resent)?;
    let statx = at::stat(&path).ok()?;
    let is_it = statx.stx_size == 0 && resent::made(&statx, FileType::RegularFile, caller, SystemTime::now());
    if is_it { at::reopen(path.as_fd(), rights_of(flags)).ok() } else { None }
}

/// close(2), with its error.
#[expect(unsafe_code, reason = "dropping a descriptor hides the error of close(2)")]
fn close(fd: OwnedFd) -> io::Result<()> {
    use std::os::fd::IntoRawFd;
    // SAFETY: the descriptor is owned and is not used again.
    let closed = unsafe { libc::close(fd.into_raw_fd()) };
    if closed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
