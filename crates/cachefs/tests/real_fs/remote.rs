//! Removing names on a remote file system: FUSE, which this test serves and which sees the descriptors of this process.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use eke_cachefs::fs::{Caller, EntryRef, Fs, Options};
use eke_cachefs::node::NoLedger;
use eke_cachefs::tier::Tier;
use eke_testkit::real::{lacking, skip};
use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, Generation, INodeNo,
    OpenFlags, RenameFlags, ReplyAttr, ReplyEmpty, ReplyEntry, Request, Session,
};
use rustix::fs::{Mode, OFlags, open};
use tempfile::TempDir;

use super::mounted::detach;

const ROOT: u64 = 1;
const ROOTS: Caller = Caller { uid: 0, gid: 0, pid: 0, resent: false };
const NAMES: [&str; 3] = ["victim", "new", "open"];

/// Files without content. What this process has open of a name that is removed or replaced is counted before it is.
#[derive(Clone, Default)]
struct Remote {
    place: Arc<Mutex<OsString>>,
    names: Arc<Mutex<HashMap<OsString, u64>>>,
    held: Arc<Mutex<Vec<usize>>>,
}

/// A mount of it. Drop unmounts it.
struct Server {
    remote: Remote,
    place: TempDir,
    session: Option<BackgroundSession>,
}

impl Server {
    fn new() -> Self {
        let (remote, place) = (Remote::default(), TempDir::new().unwrap());
        place.path().as_os_str().clone_into(&mut remote.place.lock().unwrap());
        remote.names.lock().unwrap().extend(NAMES.iter().map(OsString::from).zip(ROOT + 1..));
        let session = Session::new(remote.clone(), place.path(), &Config::default());
        let session = Some(session.and_then(Session::spawn).unwrap());
        Self { remote, place, session }
    }

    /// What was held at each call so far.
    fn held(&self) -> Vec<usize> {
        self.remote.held.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        detach(self.place.path());
        drop(self.session.take());
    }
}

impl Remote {
    fn count(&self, name: &OsStr) {
        let path = std::path::Path::new(&*self.place.lock().unwrap()).join(name);
        let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let links = open.filter_map(|fd| std::fs::read_link(fd.path()).ok());
        let held = links.filter(|link| *link == path).count();
        self.held.lock().unwrap().push(held);
    }
}

fn attr(ino: u64) -> FileAttr {
    let (kind, perm) =
        if ino == ROOT { (FileType::Directory, 0o755) } else { (FileType::RegularFile, 0o644) };
    attributes(ino, kind, perm)
}

/// Those of an empty file or a directory of this user, from 1970.
pub fn attributes(ino: u64, kind: FileType, perm: u16) -> FileAttr {
    FileAttr {
        ino: INodeNo(ino),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind,
        perm,
        nlink: 1,
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

impl Filesystem for Remote {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.names.lock().unwrap().get(name) {
            Some(ino) => reply.entry(&Duration::ZERO, &attr(*ino), Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&Duration::ZERO, &attr(ino.0));
    }

    fn unlink(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.count(name);
        self.names.lock().unwrap().remove(name);
        reply.ok();
    }

    fn rename(
        &self,
        _: &Request,
        _: INodeNo,
        name: &OsStr,
        _: INodeNo,
        to: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        self.count(to);
        let mut names = self.names.lock().unwrap();
        let moved = names.remove(name).unwrap();
        names.insert(to.to_owned(), moved);
        reply.ok();
    }
}

#[test]
fn a_file_that_nobody_has_open_is_replaced_and_removed_without_a_descriptor_of_it() {
    let test = "a_file_that_nobody_has_open_is_replaced_and_removed_without_a_descriptor_of_it";
    if let Some(why) = lacking(&["/dev/fuse"]) {
        return skip(test, &why);
    }
    let server = Server::new();
    let root = open(server.place.path(), OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
    let fs = Fs::new(root, Arc::new(Tier::default()), Arc::new(NoLedger), Options::default()).unwrap();
    let [victim, new, other] = NAMES.map(|name| {
        let number = fs.lookup(ROOT, OsStr::new(name)).unwrap().attr.ino.0;
        // Each has a descriptor, as after a request for its attributes.
        fs.nodes().path(&fs.nodes().get(number).unwrap()).unwrap();
        number
    });
    let end = |name| EntryRef { parent: ROOT, name: OsStr::new(name) };
    fs.rename(&ROOTS, end("new"), end("victim"), rustix::fs::RenameFlags::empty()).unwrap();
    fs.unlink(&ROOTS, ROOT, OsStr::new("victim"), false).unwrap();
    assert_eq!(server.held(), [0, 0]);
    assert!([victim, new].iter().all(|node| fs.nodes().get(*node).unwrap().is_gone()));

    fs.open(&ROOTS, other, OpenFlags(libc::O_RDONLY)).unwrap();
    fs.unlink(&ROOTS, ROOT, OsStr::new("open"), false).unwrap();
    assert!(server.held()[2] > 0, "an open file keeps its descriptors");
    fs.release(&ROOTS, other, FileHandle(1), OpenFlags(libc::O_RDONLY));
}
