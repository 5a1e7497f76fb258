use std::ffi::OsStr;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fuser::OpenFlags;

use crate::fs::{Caller, Fs, Options};
use crate::node::{Access, Entry, Ledger, Node, ROOT};
use crate::tier::Tier;

/// Notes opens and releases.
#[derive(Default)]
struct Noted(Mutex<Vec<&'static str>>);

impl Ledger for Noted {
    fn record(&self, entry: Entry<'_>) {
        match entry {
            Entry::Opened { .. } => self.0.lock().unwrap().push("opened"),
            Entry::Released { .. } => self.0.lock().unwrap().push("released"),
            _ => {}
        }
    }

    fn keep(&self, _: u64, _: BorrowedFd<'_>) -> io::Result<()> {
        Ok(())
    }

    fn drop_kept(&self, _: u64) {}
}

const ROOT_USER: Caller = Caller { uid: 0, gid: 0, pid: 0, resent: false };

struct Set {
    fs: Fs,
    noted: Arc<Noted>,
    node: Arc<Node>,
    _dir: tempfile::TempDir,
}

fn file_system(most: usize) -> Set {
    let dir = tempfile::tempdir_in(local()).unwrap();
    eke_testkit::tree::put(dir.path(), "file", "text");
    let root = std::fs::File::open(dir.path()).unwrap().into();
    let noted = Arc::new(Noted::default());
    let options = Options { lingering: most, ..Options::default() };
    let fs = Fs::new(root, Arc::new(Tier::default()), noted.clone(), options).unwrap();
    let found = fs.lookup(ROOT, OsStr::new("file")).unwrap();
    let node = fs.nodes.get(found.attr.ino.0).unwrap();
    Set { fs, noted, node, _dir: dir }
}

/// tmpfs is always there, and local.
fn local() -> &'static Path {
    Path::new("/dev/shm")
}

impl Set {
    fn open_and_close(&self, flags: i32) {
        let flags = OpenFlags(flags);
        let (handle, _) = self.fs.open(&ROOT_USER, self.node.number, flags).unwrap();
        self.fs.release(&ROOT_USER, self.node.number, handle, flags);
    }

    fn has_descriptor(&self) -> bool {
        self.node.descriptors().file(Access::Read).is_some()
    }

    fn later(&self, seconds: u64) {
        self.fs.close_lingering_files(Instant::now() + Duration::from_secs(seconds));
    }
}

#[test]
fn the_backing_file_stays_open_for_a_moment_and_the_ledger_has_the_close_at_once() {
    let set = file_system(8);
    set.open_and_close(libc::O_RDONLY);
    assert!(set.has_descriptor());
    assert_eq!(*set.noted.0.lock().unwrap(), ["opened", "released"]);
    let file = set.node.descriptors().file(Access::Read).unwrap();
    set.open_and_close(libc::O_RDONLY);
    assert!(
        Arc::ptr_eq(&file, &set.node.descriptors().file(Access::Read).unwrap()),
        "it was not opened again"
    );
    assert_eq!(*set.noted.0.lock().unwrap(), ["opened", "released", "opened", "released"]);
    set.later(5);
    assert!(!set.node.is_open() && !set.has_descriptor());
    assert_eq!(set.noted.0.lock().unwrap().len(), 4, "the next worker knows already");
}

#[test]
fn it_is_closed_before_it_loses_its_name() {
    let set = file_system(8);
    set.open_and_close(libc::O_RDONLY);
    set.fs.unlink(&ROOT_USER, ROOT, OsStr::new("file"), false).unwrap();
    assert!(!set.node.is_open() && !set.has_descriptor() && !set.node.is_kept());
}

#[test]
fn it_is_closed_before_another_file_replaces_it() {
    let set = file_system(8);
    eke_testkit::tree::put(set._dir.path(), "other", "text");
    set.open_and_close(libc::O_RDONLY);
    let end = |name| crate::fs::EntryRef { parent: ROOT, name: OsStr::new(name) };
    set.fs.rename(&ROOT_USER, end("other"), end("file"), rustix::fs::RenameFlags::empty()).unwrap();
    assert!(!set.node.is_open() && !set.has_descriptor());
}

#[test]
fn an_open_to_write_finds_it_closed_and_does_not_linger() {
    let set = file_system(8);
    set.open_and_close(libc::O_RDONLY);
    let flags = OpenFlags(libc::O_WRONLY);
    let (handle, _) = set.fs.open(&ROOT_USER, set.node.number, flags).unwrap();
    assert_eq!(set.node.opens(), 1);
    set.fs.release(&ROOT_USER, set.node.number, handle, flags);
    assert!(!set.node.is_open());
}

#[test]
fn a_change_of_size_leaves_no_descriptor_that_writes() {
    let set = file_system(8);
    set.open_and_close(libc::O_RDONLY);
    let change = crate::fs::AttrChange { size: Some(1), ..Default::default() };
    set.fs.setattr(&ROOT_USER, set.node.number, &change).unwrap();
    assert!(set.node.descriptors().file(Access::Write).is_none() && !set.node.is_open());
}

#[test]
fn a_file_that_lingers_is_not_in_use() {
    let set = file_system(8);
    set.open_and_close(libc::O_RDONLY);
    assert!(set.node.is_open() && !set.fs.is_in_use(&set.node));
    let (handle, _) = set.fs.open(&ROOT_USER, set.node.number, OpenFlags(libc::O_RDONLY)).unwrap();
    assert!(set.fs.is_in_use(&set.node));
    set.fs.release(&ROOT_USER, set.node.number, handle, OpenFlags(libc::O_RDONLY));
}

#[test]
fn it_is_closed_when_the_kernel_forgets_it() {
    let set = file_system(8);
    set.open_and_close(libc::O_RDONLY);
    set.fs.forget(set.node.number, 1);
    assert!(!set.node.is_open() && !set.has_descriptor());
}

#[test]
fn without_room_it_is_closed_at_once() {
    let set = file_system(0);
    set.open_and_close(libc::O_RDONLY);
    assert!(!set.node.is_open() && !set.has_descriptor());
}

#[test]
fn while_a_program_has_it_open_a_close_keeps_nothing() {
    let set = file_system(8);
    let flags = OpenFlags(libc::O_RDONLY);
    let (first, _) = set.fs.open(&ROOT_USER, set.node.number, flags).unwrap();
    set.open_and_close(libc::O_RDONLY);
    assert_eq!(set.node.opens(), 1);
    set.later(5);
    assert_eq!(set.node.opens(), 1, "the program's own");
    set.fs.release(&ROOT_USER, set.node.number, first, flags);
    assert!(set.has_descriptor(), "now it lingers");
}
