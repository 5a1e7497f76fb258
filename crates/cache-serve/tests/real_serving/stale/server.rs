//! A file system with one file that a server changes. The kernel caches attributes for an hour, as NFS does for a minute.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen,
    Request, Session, SessionACL,
};

const HOUR: Duration = Duration::from_secs(3600);
const FILE: INodeNo = INodeNo(2);

#[derive(Clone)]
struct OneFile(Arc<State>);

struct State {
    content: Mutex<(Vec<u8>, SystemTime)>,
    opens: AtomicUsize,
}

/// Drop unmounts it.
pub struct Server {
    served: OneFile,
    session: Option<BackgroundSession>,
    place: std::path::PathBuf,
}

impl Server {
    /// Serves a file `file` in this directory.
    pub fn start(place: &Path) -> Self {
        let old = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let state = State { content: Mutex::new((Vec::new(), old)), opens: AtomicUsize::new(0) };
        let served = OneFile(Arc::new(state));
        let mut config = Config::default();
        config.acl = SessionACL::All;
        // Otherwise each read would change the access time, and the kernel would request the attributes.
        config.mount_options = vec![MountOption::RO];
        let session = Session::new(served.clone(), place, &config).and_then(Session::spawn).unwrap();
        Self { served, session: Some(session), place: place.to_owned() }
    }

    /// Gives the file this content, and a later time.
    pub fn put(&self, bytes: &[u8]) {
        let mut content = self.served.0.content.lock().unwrap();
        *content = (bytes.to_vec(), content.1 + Duration::from_millis(1_500));
    }

    pub fn opens(&self) -> usize {
        self.served.0.opens.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.place, rustix::mount::UnmountFlags::DETACH);
        drop(self.session.take());
    }
}

impl OneFile {
    fn attr(&self, ino: INodeNo) -> FileAttr {
        let (size, time) = {
            let content = self.0.content.lock().unwrap();
            (content.0.len() as u64, content.1)
        };
        let (kind, perm) =
            if ino == FILE { (FileType::RegularFile, 0o644) } else { (FileType::Directory, 0o755) };
        FileAttr {
            ino,
            size,
            blocks: size.div_ceil(512),
            atime: time,
            mtime: time,
            ctime: time,
            crtime: UNIX_EPOCH,
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
}

impl Filesystem for OneFile {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == "file" {
            reply.entry(&HOUR, &self.attr(FILE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&HOUR, &self.attr(ino));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.0.opens.fetch_add(1, Ordering::SeqCst);
        reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.0.opens.fetch_sub(1, Ordering::SeqCst);
        reply.ok();
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let content = self.0.content.lock().unwrap();
        let from = content.0.len().min(offset as usize);
        let to = content.0.len().min(from + size as usize);
        reply.data(&content.0[from..to]);
    }
}
