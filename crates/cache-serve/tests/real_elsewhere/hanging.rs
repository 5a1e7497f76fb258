//! A FUSE file system in this process that stops answering while its gate is closed. One file is answered always.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, Generation, INodeNo,
    LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyWrite, Request, Session, SessionACL, WriteFlags,
};
use rustix::mount::{UnmountFlags, unmount};

/// Files that wait at the gate, by the names `0`, `1`, ...
pub const FILES: usize = 200;
/// The file that does not.
pub const KEPT: &str = "kept";
/// The content of the others.
pub const TEXT: &str = "what the file has";

const ROOT: u64 = 1;
const KEPT_INO: u64 = 2;
const FIRST: u64 = 3;
const KEPT_LEN: usize = 4096;
/// The kernel asks for attributes each time.
const NEVER: Duration = Duration::ZERO;
const ALWAYS: Duration = Duration::from_secs(3600);

#[derive(Default)]
pub struct Gate {
    closed: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    pub fn close(&self) {
        *self.closed.lock().unwrap() = true;
    }

    pub fn open(&self) {
        *self.closed.lock().unwrap() = false;
        self.opened.notify_all();
    }

    fn is_closed(&self) -> bool {
        *self.closed.lock().unwrap()
    }

    fn pass(&self) {
        let closed = self.closed.lock().unwrap();
        drop(self.opened.wait_timeout_while(closed, crate::HANGS, |closed| *closed).unwrap());
    }
}

/// The file system, mounted. Drop unmounts it.
pub struct Hanging {
    pub gate: Arc<Gate>,
    kept: Arc<Mutex<Vec<u8>>>,
    place: std::path::PathBuf,
    session: Option<BackgroundSession>,
}

impl Hanging {
    pub fn new(place: &Path) -> Self {
        let (gate, kept) = (Arc::new(Gate::default()), Arc::new(Mutex::new(vec![b'0'; KEPT_LEN])));
        let fs = HangingFs { gate: Arc::clone(&gate), kept: Arc::clone(&kept) };
        let mut config = Config::default();
        // As the directory's own mount, or it is not served.
        config.mount_options = vec![MountOption::Suid, MountOption::Dev, MountOption::DefaultPermissions];
        config.acl = SessionACL::All;
        let session = Session::new(fs, place, &config).and_then(Session::spawn).unwrap();
        Self { gate, kept, place: place.to_owned(), session: Some(session) }
    }

    /// The first bytes of the file that is answered always.
    pub fn kept(&self) -> String {
        String::from_utf8_lossy(&self.kept.lock().unwrap()[..crate::mapping::STORED.len()]).into_owned()
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        self.gate.open();
        let _ = unmount(&self.place, UnmountFlags::DETACH);
        drop(self.session.take());
    }
}

#[derive(Clone)]
struct HangingFs {
    gate: Arc<Gate>,
    kept: Arc<Mutex<Vec<u8>>>,
}

impl HangingFs {
    /// Answers, or has a thread answer when the gate is open.
    fn at(&self, ino: u64, answer: impl FnOnce(&Self) + Send + 'static) {
        if ino == KEPT_INO || !self.gate.is_closed() {
            return answer(self);
        }
        let this = self.clone();
        std::thread::spawn(move || {
            this.gate.pass();
            answer(&this);
        });
    }
}

fn attr(ino: u64) -> FileAttr {
    let size = if ino == KEPT_INO { KEPT_LEN } else { TEXT.len() };
    FileAttr {
        ino: INodeNo(ino),
        size: size as u64,
        blocks: 1,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: if ino == ROOT { FileType::Directory } else { FileType::RegularFile },
        perm: if ino == ROOT { 0o755 } else { 0o644 },
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

fn part(content: &[u8], offset: u64, size: u32) -> &[u8] {
    let start = usize::try_from(offset).unwrap().min(content.len());
    &content[start..(start + size as usize).min(content.len())]
}

impl Filesystem for HangingFs {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let number = name.to_str().and_then(|name| name.parse::<u64>().ok()).map(|n| n + FIRST);
        let Some(ino) = number.or((name == KEPT).then_some(KEPT_INO)) else {
            return reply.error(Errno::ENOENT);
        };
        self.at(ino, move |_| reply.entry(&ALWAYS, &attr(ino), Generation(0)));
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.at(ino.0, move |_| reply.attr(&NEVER, &attr(ino.0)));
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.at(ino.0, move |this| match ino.0 {
            KEPT_INO => reply.data(part(&this.kept.lock().unwrap(), offset, size)),
            _ => reply.data(part(TEXT.as_bytes(), offset, size)),
        });
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let start = usize::try_from(offset).unwrap();
        self.kept.lock().unwrap()[start..start + data.len()].copy_from_slice(data);
        reply.written(u32::try_from(data.len()).unwrap());
    }

    fn flush(&self, _: &Request, ino: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        self.at(ino.0, move |_| reply.ok());
    }

    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.at(ino.0, move |_| reply.ok());
    }

    fn readdir(&self, _: &Request, ino: INodeNo, _: FileHandle, _: u64, reply: ReplyDirectory) {
        self.at(ino.0, move |_| reply.ok());
    }
}
