//! What the server of a remote file system has replaced: FUSE, which this test serves, and which believes names and attributes for long.

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use eke_cachefs::fs::{Caller, Fs, Options};
use eke_cachefs::node::NoLedger;
use eke_cachefs::tier::Tier;
use eke_testkit::real::{lacking, skip};
use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, OpenFlags, ReplyAttr, ReplyEntry, ReplyOpen, Request, Session,
};
use rustix::fs::{Mode, OFlags, open};
use tempfile::TempDir;

use super::mounted::detach;
use super::remote::attributes;

const ROOT: u64 = 1;
const ROOTS: Caller = Caller { uid: 0, gid: 0, pid: 0, resent: false };
const LONG: Duration = Duration::from_secs(3600);
/// A directory and its file; others with these names after they were replaced.
const BEFORE: [u64; 2] = [2, 3];
const AFTER: [u64; 2] = [4, 5];

#[derive(Clone, Default)]
struct Remote {
    is_replaced: Arc<AtomicBool>,
}

impl Remote {
    fn known(&self) -> [u64; 2] {
        if self.is_replaced.load(SeqCst) { AFTER } else { BEFORE }
    }

    fn knows(&self, ino: INodeNo) -> Result<FileAttr, Errno> {
        let known = ino.0 == ROOT || self.known().contains(&ino.0);
        if known { Ok(attr(ino.0)) } else { Err(Errno::ESTALE) }
    }
}

fn attr(ino: u64) -> FileAttr {
    let is_file = [BEFORE[1], AFTER[1]].contains(&ino);
    attributes(ino, if is_file { FileType::RegularFile } else { FileType::Directory }, 0o755)
}

impl Filesystem for Remote {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let [dir, file] = self.known();
        match (self.knows(parent), name.to_str()) {
            (Err(e), _) => reply.error(e),
            (Ok(_), Some("dir")) if parent.0 == ROOT => reply.entry(&LONG, &attr(dir), Generation(0)),
            (Ok(_), Some("file")) if parent.0 == dir => reply.entry(&LONG, &attr(file), Generation(0)),
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.knows(ino) {
            Ok(attr) => reply.attr(&LONG, &attr),
            Err(e) => reply.error(e),
        }
    }

    fn open(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.knows(ino) {
            Ok(_) => reply.opened(FileHandle(0), FopenFlags::empty()),
            Err(e) => reply.error(e),
        }
    }
}

/// A mount of it, and the cache on that. Drop unmounts it.
struct Server {
    remote: Remote,
    place: TempDir,
    session: Option<BackgroundSession>,
}

impl Server {
    fn new() -> Self {
        let (remote, place) = (Remote::default(), TempDir::new().unwrap());
        let session = Session::new(remote.clone(), place.path(), &Config::default());
        let session = Some(session.and_then(Session::spawn).unwrap());
        Self { remote, place, session }
    }

    fn cached(&self) -> Fs {
        let root = open(self.place.path(), OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
        Fs::new(root, Arc::new(Tier::default()), Arc::new(NoLedger), Options::default()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        detach(self.place.path());
        drop(self.session.take());
    }
}

/// The way of a program's call to a node.
type Walk = fn(&Fs) -> io::Result<u64>;

fn opened(fs: &Fs) -> io::Result<u64> {
    let dir = fs.lookup(ROOT, OsStr::new("dir"))?.attr.ino.0;
    let file = fs.lookup(dir, OsStr::new("file"))?.attr.ino.0;
    let read = OpenFlags(libc::O_RDONLY);
    let (handle, _) = fs.open(&ROOTS, file, read)?;
    fs.release(&ROOTS, file, handle, read);
    Ok(file)
}

fn listed(fs: &Fs) -> io::Result<u64> {
    let dir = fs.lookup(ROOT, OsStr::new("dir"))?.attr.ino.0;
    let (handle, _) = fs.opendir(dir)?;
    fs.releasedir(&ROOTS, dir, handle);
    Ok(dir)
}

#[test]
fn what_a_server_has_replaced_is_found_by_the_second_walk() {
    if let Some(why) = lacking(&["/dev/fuse"]) {
        return skip("what_a_server_has_replaced_is_found_by_the_second_walk", &why);
    }
    for (walk, at) in [(opened as Walk, 1), (listed, 0)] {
        let server = Server::new();
        let fs = server.cached();
        assert_eq!(walk(&fs).unwrap(), BEFORE[at]);
        // A descriptor of each, as after a request for its attributes.
        assert!(BEFORE[..=at].iter().all(|node| fs.getattr(*node).is_ok()));
        server.remote.is_replaced.store(true, SeqCst);
        let first = walk(&fs).map_err(|e| e.raw_os_error());
        assert_eq!(
            first,
            Err(Some(libc::ESTALE)),
            "names and attributes are believed: else this shows nothing"
        );
        // At ESTALE the kernel walks once more (`LOOKUP_REVAL` in fs/namei.c).
        assert_eq!(walk(&fs).unwrap(), AFTER[at]);
    }
}
