//! The functions that fuser calls: each decodes, calls a function of [`Fs`], and encodes. A trait has one `impl`, so all
//! requests are here, in the order of the files that execute them. `answers`: what they have in common.

mod answers;

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, CopyFileRangeFlags, Errno, FileHandle, Filesystem, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr,
    Request, TimeOrNow, WriteFlags,
};

use super::directories::ListedEntry;
use super::elsewhere::{Elsewhere, Share};
use super::fetchers::{Fetchers, ReadDispatch};
use super::handles::is_past_store;
use super::leased;
use super::places::Places;
use super::removal::EntryRef;
use super::reply::{answer, bytes, empty};
use super::space::FilePosition;
use super::turns::Turns;
use super::{AttrChange, Caller, FoundNode, Fs, capabilities};
use answers::{NewName, OwnedKind, WriteRequest};

/// The file system for fuser. Clones serve the same file system, so that each session can have one.
#[derive(Debug, Clone)]
pub struct Serve {
    fs: Arc<Fs>,
    reads: ReadDispatch,
    leased: Arc<Places>,
    elsewhere: Arc<Elsewhere>,
    turns: Arc<Turns>,
}

impl Serve {
    /// Serves this file system. A session that reads waits for the backing file itself.
    pub fn new(fs: Arc<Fs>) -> Self {
        Self::reading_by(ReadDispatch::of(Arc::clone(&fs), None), fs)
    }

    /// Serves this file system. The fetchers read missing blocks.
    pub fn with_fetchers(fs: Arc<Fs>, fetchers: &Fetchers) -> Self {
        Self::reading_by(ReadDispatch::of(Arc::clone(&fs), Some(fetchers)), fs)
    }

    fn reading_by(reads: ReadDispatch, fs: Arc<Fs>) -> Self {
        Self { fs, reads, leased: leased::places(), elsewhere: Arc::default(), turns: Arc::default() }
    }
}

impl Filesystem for Serve {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let offered = config.capabilities();
        let mut requested = capabilities();
        // With a depth the mount counts as one layer more, and the kernel allows overlayfs only one on it instead of two.
        if !self.fs.may_pass_through() || config.set_max_stack_depth(1).is_err() {
            requested -= InitFlags::FUSE_PASSTHROUGH;
        }
        // Only offered flags are requested, so none is refused.
        let _ = config.add_capabilities(requested & offered);
        Ok(())
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let Some(share) = self.at(request, parent, name) else { return reply.error(Errno::EBUSY) };
        let (caller, name) = (Caller::from(request), name.to_owned());
        self.searching(caller.uid, share, move |this| {
            let asked = this.asked();
            let found = caller.sees(|| this.fs.lookup(parent.0, &name));
            this.looked_up(reply, parent, asked, found);
        });
    }

    fn forget(&self, _: &Request, ino: INodeNo, lookups: u64) {
        self.fs.forget(ino.0, lookups);
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let made = NewName { parent, name: name.to_owned(), mode, umask };
        self.make(request, made, OwnedKind::Node(mode & libc::S_IFMT, rdev), reply);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let made = NewName { parent, name: name.to_owned(), mode, umask };
        self.make(request, made, OwnedKind::Directory, reply);
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let made = NewName { parent, name: name.to_owned(), mode: 0o777, umask: 0 };
        self.make(request, made, OwnedKind::Symlink(target.to_owned()), reply);
    }

    fn readlink(&self, request: &Request, ino: INodeNo, reply: ReplyData) {
        let Some(share) = self.on(request, ino) else { return reply.error(Errno::EBUSY) };
        let caller = Caller::from(request);
        self.searching(caller.uid, share, move |this| {
            let read = caller.sees(|| this.fs.readlink(ino.0));
            answer(reply, read, |reply, target| reply.data(&target));
        });
    }

    fn link(&self, request: &Request, ino: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let nodes = &self.fs.nodes;
        let is_elsewhere = nodes.is_elsewhere(ino.0) || nodes.leads_elsewhere(parent.0, name);
        let Some(share) = self.elsewhere.take(is_elsewhere, request.uid()) else {
            return reply.error(Errno::EBUSY);
        };
        let (caller, name) = (Caller::from(request), name.to_owned());
        self.in_turn(caller.uid, share, move |this| {
            this.entry(reply, parent, this.asked(), this.fs.link(&caller, ino.0, parent.0, &name));
        });
    }

    fn unlink(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.remove(request, parent, name, false, reply);
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.remove(request, parent, name, true, reply);
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let nodes = &self.fs.nodes;
        let is_elsewhere =
            nodes.leads_elsewhere(parent.0, name) || nodes.leads_elsewhere(new_parent.0, new_name);
        let Some(share) = self.elsewhere.take(is_elsewhere, request.uid()) else {
            return reply.error(Errno::EBUSY);
        };
        let flags = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
        let (caller, name, new_name) = (Caller::from(request), name.to_owned(), new_name.to_owned());
        self.in_turn(caller.uid, share, move |this| {
            let from = EntryRef { parent: parent.0, name: &name };
            let to = EntryRef { parent: new_parent.0, name: &new_name };
            empty(reply, this.fs.rename(&caller, from, to, flags));
        });
    }

    fn getattr(&self, request: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let Some(share) = self.on(request, ino) else { return reply.error(Errno::EBUSY) };
        let caller = Caller::from(request);
        self.searching(caller.uid, share, move |this| {
            let asked = this.asked();
            this.attr(reply, asked, caller.sees(|| this.fs.getattr(ino.0)));
        });
    }

    fn setattr(
        &self,
        request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let Some(share) = self.on(request, ino) else { return reply.error(Errno::EBUSY) };
        let (atime, mtime) = (atime.map(Into::into), mtime.map(Into::into));
        let change = AttrChange { mode, uid, gid, size, atime, mtime };
        let caller = Caller::from(request);
        self.in_turn(caller.uid, share, move |this| {
            let asked = this.asked();
            this.attr(reply, asked, caller.sees(|| this.fs.setattr(&caller, ino.0, &change)));
        });
    }

    fn open(&self, request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let Some(share) = self.on(request, ino) else { return reply.error(Errno::EBUSY) };
        let caller = Caller::from(request);
        if flags.0 & libc::O_TRUNC == 0 {
            return self.searching(caller.uid, share, move |this| this.open_now(caller, ino, flags, reply));
        }
        self.in_turn(caller.uid, share, move |this| this.open_now(caller, ino, flags, reply));
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let Some(share) = self.at(request, parent, name) else { return reply.error(Errno::EBUSY) };
        let (caller, name) = (Caller::from(request), name.to_owned());
        self.in_turn(caller.uid, share, move |this| {
            let asked = this.asked();
            let create = || this.fs.create(&caller, parent.0, &name, (mode, umask), flags);
            this.created(flags, (parent, asked), caller.sees(create), reply);
        });
    }

    fn read(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let Some(share) = self.on(request, ino) else { return reply.error(Errno::EBUSY) };
        if is_past_store(handle) {
            return self.in_turn(request.uid(), share, move |this| {
                let read = this.fs.read_past_store(ino.0, offset, size);
                answer(reply, read, |reply, bytes| reply.data(&bytes));
            });
        }
        self.reads.read(ino.0, offset, size, share.is_elsewhere(), reply);
    }

    fn write(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let how = (write_flags, flags);
        let write = WriteRequest { caller: request.into(), number: ino.0, handle, offset, how };
        if write_flags.contains(WriteFlags::FUSE_WRITE_CACHE) {
            return self.write_back(write, data, reply);
        }
        let Some(share) = self.on(request, ino) else { return reply.error(Errno::EBUSY) };
        self.write_in_turn(&share, write, data, reply);
    }

    /// In nobody's turn: a program that starts another one closes copies of its files, also while its writes wait.
    fn flush(&self, _: &Request, ino: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        self.answer_surely(ino, move |fs| empty(reply, fs.flush(ino.0)));
    }

    fn release(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        flags: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        let (caller, releases) = (Caller::from(request), &self.elsewhere.releases);
        if let Some(_share) = releases.take(self.fs.nodes.is_elsewhere(ino.0)) {
            self.fs.release(&caller, ino.0, handle, flags);
            return reply.ok();
        }
        // Nobody waits for the answer, and without it the kernel would send fewer other requests.
        reply.ok();
        let fs = Arc::clone(&self.fs);
        releases.later(move || fs.release(&caller, ino.0, handle, flags));
    }

    fn fsync(&self, request: &Request, ino: INodeNo, handle: FileHandle, data_only: bool, reply: ReplyEmpty) {
        let sync = move |fs: &Fs| empty(reply, fs.fsync(ino.0, handle, data_only));
        if self.fs.nodes.is_elsewhere(ino.0) {
            return self.answer_surely(ino, sync);
        }
        self.in_turn(request.uid(), Share::All, move |this| sync(&this.fs));
    }

    fn opendir(&self, request: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let Some(share) = self.on(request, ino) else { return reply.error(Errno::EBUSY) };
        self.searching(request.uid(), share, move |this| {
            answer(reply, this.fs.opendir(ino.0), |reply, (handle, how)| reply.opened(handle, how));
        });
    }

    fn readdir(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let Some(share) = self.on(request, ino) else { return reply.error(Errno::EBUSY) };
        let caller = Caller::from(request);
        self.searching(caller.uid, share, move |this| {
            let mut add = |l: &ListedEntry<'_>| reply.add(INodeNo(l.ino), l.next, l.kind, l.name);
            let listed = caller.sees(|| this.fs.readdir(ino.0, handle, offset, &mut add));
            answer(reply, listed, |reply, ()| reply.ok());
        });
    }

    fn readdirplus(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let Some(share) = self.on(request, ino) else { return reply.error(Errno::EBUSY) };
        let (caller, is_elsewhere) = (Caller::from(request), share.is_elsewhere());
        self.searching(caller.uid, share, move |this| {
            let is_point = |name: &OsStr| !is_elsewhere && this.fs.nodes.is_mount_point(ino.0, name);
            let ask = |name: &OsStr| this.elsewhere.take(is_point(name), caller.uid);
            let (asked, now) = (this.asked(), SystemTime::now());
            let mut add = |l: &ListedEntry<'_>, f: &FoundNode| {
                let lifetime = || {
                    let lifetime = this.lifetime_at(asked, &f.attr, now);
                    lifetime.in_directory(|| this.fs.ignores_case(ino.0)).of_both()
                };
                let ttl = if l.foreign { Duration::ZERO } else { lifetime() };
                reply.add(f.attr.ino, l.next, l.name, &ttl, &f.attr, Generation(f.generation))
            };
            let listed = caller.sees(|| this.fs.readdirplus(ino.0, handle, offset, ask, &mut add));
            answer(reply, listed, |reply, ()| reply.ok());
        });
    }

    fn releasedir(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.fs.releasedir(&Caller::from(request), ino.0, handle);
        reply.ok();
    }

    fn fsyncdir(&self, request: &Request, ino: INodeNo, _: FileHandle, data_only: bool, reply: ReplyEmpty) {
        let Some(share) = self.on(request, ino) else { return reply.error(Errno::EBUSY) };
        self.in_turn(request.uid(), share, move |this| empty(reply, this.fs.fsyncdir(ino.0, data_only)));
    }

    fn setxattr(
        &self,
        request: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        let Some(share) = self.on(request, ino) else { return reply.error(Errno::EBUSY) };
        let (caller, name, value) = (Caller::from(request), name.to_owned(), value.to_owned());
        self.in_turn(caller.uid, share, move |this| {
            empty(reply, this.fs.setxattr(&caller, ino.0, &name, &value, flags));
        });
    }

    fn getxattr(&self, request: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let Some(share) = self.on(request, ino) else { return reply.error(Errno::EBUSY) };
        let (caller, name) = (Caller::from(request), name.to_owned());
        self.searching(caller.uid, share, move |this| {
            bytes(reply, size, caller.sees(|| this.fs.getxattr(&caller, ino.0, &name, size)));
        });
    }

    fn listxattr(&self, request: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        let Some(share) = self.on(request, ino) else { return reply.error(Errno::EBUSY) };
        let caller = Caller::from(request);
        self.searching(caller.uid, share, move |this| {
            bytes(reply, size, caller.sees(|| this.fs.listxattr(&caller, ino.0, size)));
        });
    }

    fn removexattr(&self, request: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let Some(share) = self.on(request, ino) else { return reply.error(Errno::EBUSY) };
        let (caller, name) = (Caller::from(request), name.to_owned());
        self.in_turn(caller.uid, share, move |this| empty(reply, this.fs.removexattr(&caller, ino.0, &name)));
    }

    fn statfs(&self, request: &Request, ino: INodeNo, reply: ReplyStatfs) {
        let Some(_share) = self.on(request, ino) else { return reply.error(Errno::EBUSY) };
        let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        answer(reply, self.fs.statfs(ino.0), |reply, s| {
            reply.statfs(
                s.f_blocks,
                s.f_bfree,
                s.f_bavail,
                s.f_files,
                s.f_ffree,
                small(s.f_bsize),
                small(s.f_namemax),
                small(s.f_frsize),
            );
        });
    }

    fn fallocate(
        &self,
        request: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        len: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let Some(share) = self.on(request, ino) else { return reply.error(Errno::EBUSY) };
        let (caller, at) = (Caller::from(request), FilePosition { number: ino.0, offset });
        self.in_turn(caller.uid, share, move |this| empty(reply, this.fs.fallocate(&caller, at, len, mode)));
    }

    fn lseek(
        &self,
        request: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let Some(share) = self.on(request, ino) else { return reply.error(Errno::EBUSY) };
        let Ok(offset) = u64::try_from(offset) else { return reply.error(Errno::ENXIO) };
        self.searching(request.uid(), share, move |this| {
            let found = this.fs.lseek(FilePosition { number: ino.0, offset }, whence);
            answer(reply, found, |reply, at| reply.offset(i64::try_from(at).unwrap_or(i64::MAX)));
        });
    }

    fn copy_file_range(
        &self,
        request: &Request,
        from: INodeNo,
        _: FileHandle,
        from_offset: u64,
        to: INodeNo,
        _: FileHandle,
        to_offset: u64,
        len: u64,
        _: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let is_elsewhere = self.fs.nodes.is_elsewhere(from.0) || self.fs.nodes.is_elsewhere(to.0);
        let Some(share) = self.elsewhere.take(is_elsewhere, request.uid()) else {
            return reply.error(Errno::EBUSY);
        };
        let (from, to) = (
            FilePosition { number: from.0, offset: from_offset },
            FilePosition { number: to.0, offset: to_offset },
        );
        let caller = Caller::from(request);
        self.in_turn(caller.uid, share, move |this| {
            answer(reply, this.fs.copy_file_range(&caller, from, to, len), ReplyWrite::written);
        });
    }
}
