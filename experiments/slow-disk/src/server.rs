//! The file server: one directory with one file in it, the image.
//!
//! One thread ("fuser-0") reads requests from the kernel, and computes each answer and the time at which it is due.
//! Another thread sends it then ([`super::pace`]). FOPEN_DIRECT_IO keeps the page cache out of the way between the loop
//! device and this server; parallel direct writes let the loop device keep several requests in flight.

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use eke_model::units::Bytes;
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite,
    WriteFlags,
};

use super::model::{Kind, Request};
use super::pace::{Pace, come_first};
use super::state::{Answer, DiskState};

/// The image's name in the mount.
pub(super) const FILE: &str = "image";
const INODE: INodeNo = INodeNo(2);
/// The file's attributes never change.
const FOR_EVER: Duration = Duration::from_secs(1 << 30);
/// More than the loop device's 128 requests, so that the kernel never delays one.
const UNDER_WAY: u16 = 256;
/// The largest request, also fs.fuse.max_pages_limit's default (256 pages).
const LARGEST: u32 = 1 << 20;

/// Serves one image.
pub(super) struct Server {
    /// Computes answers and their times.
    pub(super) disk: Arc<DiskState>,
    /// Sends the answers.
    pub(super) pace: Pace,
    /// The size of the file.
    pub(super) size: Bytes,
}

impl Server {
    fn attr(&self, ino: INodeNo) -> FileAttr {
        let file = ino == INODE;
        let size = if file { self.size.0 } else { 0 };
        let (kind, perm) = if file { (FileType::RegularFile, 0o600) } else { (FileType::Directory, 0o700) };
        let time = SystemTime::UNIX_EPOCH;
        FileAttr {
            ino,
            size,
            blocks: size / 512,
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    fn later(&self, request: Request, write: &[u8], send: impl FnOnce(Answer) + Send + 'static) {
        self.pace.add(self.disk.take(&request, write, Box::new(send)));
    }
}

fn errno(e: rustix::io::Errno) -> Errno {
    Errno::from_i32(e.raw_os_error())
}

impl Filesystem for Server {
    fn init(&mut self, _: &fuser::Request, config: &mut KernelConfig) -> io::Result<()> {
        let refused = |what: &str| io::Error::other(format!("this kernel's FUSE has no {what}"));
        config.add_capabilities(InitFlags::FUSE_ASYNC_DIO).map_err(|_| refused("asynchronous direct I/O"))?;
        config.set_max_background(UNDER_WAY).map_err(|_| refused("long queue"))?;
        config.set_congestion_threshold(UNDER_WAY).map_err(|_| refused("long queue"))?;
        config.set_max_write(LARGEST).map_err(|_| refused("large requests"))?;
        Ok(())
    }

    /// losetup's first request.
    fn lookup(&self, _: &fuser::Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        come_first();
        if parent == INodeNo::ROOT && name == FILE {
            reply.entry(&FOR_EVER, &self.attr(INODE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &fuser::Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOR_EVER, &self.attr(ino));
    }

    fn open(&self, _: &fuser::Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES);
    }

    fn read(
        &self,
        _: &fuser::Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let request = Request { kind: Kind::Read, offset, length: u64::from(size) };
        self.later(request, &[], |answer| match answer {
            Ok(bytes) => reply.data(&bytes),
            Err(e) => reply.error(errno(e)),
        });
    }

    fn write(
        &self,
        _: &fuser::Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let request = Request { kind: Kind::Write, offset, length: u64::from(length) };
        self.later(request, data, move |answer| match answer {
            Ok(_) => reply.written(length),
            Err(e) => reply.error(errno(e)),
        });
    }

    fn fsync(&self, _: &fuser::Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let request = Request { kind: Kind::Flush, offset: 0, length: 0 };
        self.later(request, &[], |answer| match answer {
            Ok(_) => reply.ok(),
            Err(e) => reply.error(errno(e)),
        });
    }

    /// close(2) does nothing: a disk is flushed by `fsync`.
    fn flush(&self, _: &fuser::Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    /// There is no discard; the kernel writes zeroes where it needs them.
    fn fallocate(
        &self,
        _: &fuser::Request,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: u64,
        _: i32,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EOPNOTSUPP);
    }
}
