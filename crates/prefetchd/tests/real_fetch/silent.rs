//! A file system that does not answer until a test lets it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, Generation, INodeNo,
    LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEntry, Request, Session,
};
use rustix::mount::{UnmountFlags, unmount};
use tempfile::TempDir;

const LEN: u64 = 1 << 20;

type Later = Box<dyn FnOnce() + Send>;

/// Withheld answers; `None` once they are released.
type Withheld = Arc<Mutex<Option<Vec<Later>>>>;

/// The calls that are not answered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    Lookup,
    Read,
}

struct Server {
    silence: Silence,
    withheld: Withheld,
}

pub struct Silent {
    session: Option<BackgroundSession>,
    withheld: Withheld,
    dir: TempDir,
}

fn attr(ino: INodeNo) -> FileAttr {
    let is_dir = ino == INodeNo::ROOT;
    FileAttr {
        ino,
        size: if is_dir { 0 } else { LEN },
        blocks: LEN / 512,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: if is_dir { FileType::Directory } else { FileType::RegularFile },
        perm: 0o755,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

impl Server {
    fn later(&self, answer: impl FnOnce() + Send + 'static) {
        match self.withheld.lock().unwrap().as_mut() {
            Some(withheld) => withheld.push(Box::new(answer)),
            None => answer(),
        }
    }
}

impl Filesystem for Server {
    fn lookup(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEntry) {
        match self.silence {
            Silence::Lookup => self.later(move || reply.error(Errno::EIO)),
            Silence::Read => reply.entry(&Duration::from_secs(60), &attr(INodeNo(2)), Generation(0)),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&Duration::from_secs(60), &attr(ino));
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.later(move || reply.error(Errno::EIO));
    }
}

impl Silent {
    pub fn mount(silence: Silence) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let withheld: Withheld = Arc::new(Mutex::new(Some(Vec::new())));
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("answers-late".to_owned())];
        let server = Server { silence, withheld: Arc::clone(&withheld) };
        let session = Session::new(server, dir.path(), &config).unwrap().spawn().unwrap();
        Self { session: Some(session), withheld, dir }
    }

    pub fn top(&self) -> &Path {
        self.dir.path()
    }

    /// A file in it, with its stamp.
    pub fn file(&self, name: &str) -> (PathBuf, eke_prefetch_model::Stamp) {
        let stamp = eke_prefetch_model::Stamp { dev: 0, ino: 2, size: LEN, mtime_ns: 0 };
        (self.dir.path().join(name), stamp)
    }

    /// Releases the withheld answers, and answers from now on.
    pub fn answer(&self) {
        let withheld = self.withheld.lock().unwrap().take();
        withheld.into_iter().flatten().for_each(|answer| answer());
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        self.answer();
        let _ = unmount(self.dir.path(), UnmountFlags::DETACH);
        if let Some(session) = self.session.take() {
            let _ = session.join();
        }
    }
}
