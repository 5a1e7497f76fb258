//! A second worker restores the first one's records; requests that are resent. Without a mount: the tests call the file
//! system's functions as the kernel would.
#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "test code")]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use eke_cachefs::fs::{Caller, EntryRef, Fs, NewNode, Options};
use eke_cachefs::node::{Entry, Ledger, NoLedger};
use eke_cachefs::tier::Tier;
use fuser::{FileHandle, FopenFlags, OpenFlags, WriteFlags};
use rustix::fs::{Mode, OFlags, RenameFlags, open};
use tempfile::TempDir;

const ROOT: u64 = 1;

/// The fields of [`Entry::Known`] in their order.
type Known = (u64, u64, OsString, u64, u64, i128, u64);

/// A supervisor: the records, and the kept descriptors.
#[derive(Debug, Default)]
struct Notes {
    known: Mutex<Vec<Known>>,
    open: Mutex<Vec<u64>>,
    kept: Mutex<Vec<(u64, OwnedFd)>>,
}

impl Ledger for Notes {
    fn record(&self, entry: Entry<'_>) {
        let mut known = self.known.lock().unwrap();
        match entry {
            Entry::Known { node, parent, name, dev, ino, born_ns, generation } => {
                known.push((node, parent, name.to_owned(), dev, ino, born_ns, generation));
            }
            Entry::Forgotten { node } => known.retain(|k| k.0 != node),
            Entry::Opened { node } => self.open.lock().unwrap().push(node),
            Entry::Released { node } => {
                let mut open = self.open.lock().unwrap();
                if let Some(at) = open.iter().position(|n| *n == node) {
                    open.remove(at);
                }
            }
        }
    }

    fn keep(&self, node: u64, file: BorrowedFd<'_>) -> io::Result<()> {
        self.kept.lock().unwrap().push((node, file.try_clone_to_owned()?));
        Ok(())
    }

    fn drop_kept(&self, node: u64) {
        self.kept.lock().unwrap().retain(|k| k.0 != node);
    }
}

fn serve(dir: &Path, ledger: Arc<dyn Ledger>) -> Fs {
    let root = open(dir, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
    Fs::new(root, Arc::new(Tier::default()), ledger, Options::default()).unwrap()
}

/// The next worker, with the last one's records.
fn next(dir: &Path, notes: &Notes) -> Fs {
    let fs = serve(dir, Arc::new(NoLedger));
    let known = notes.known.lock().unwrap();
    let nodes = known.iter().map(|(node, parent, name, dev, ino, born_ns, generation)| Entry::Known {
        node: *node,
        parent: *parent,
        name,
        dev: *dev,
        ino: *ino,
        born_ns: *born_ns,
        generation: *generation,
    });
    let open = notes.open.lock().unwrap().clone();
    let opens = open.iter().map(|&node| Entry::Opened { node });
    fs.nodes().restore(nodes.chain(opens), std::mem::take(&mut *notes.kept.lock().unwrap()));
    fs
}

fn caller(resent: bool) -> Caller {
    let ids = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    Caller { uid: ids.0, gid: ids.1, pid: 0, resent }
}

fn name(name: &str) -> &OsStr {
    OsStr::new(name)
}

fn errno<T: std::fmt::Debug>(result: io::Result<T>) -> i32 {
    result.unwrap_err().raw_os_error().unwrap()
}

fn text(fs: &Fs, number: u64) -> io::Result<String> {
    fs.read(number, 0, 100, |data| String::from_utf8(data.to_vec()).unwrap())
}

#[test]
fn the_next_worker_serves_open_moved_and_unlinked_files() {
    let (dir, notes) = (TempDir::new().unwrap(), Arc::new(Notes::default()));
    fs::create_dir(dir.path().join("dir")).unwrap();
    for file in ["moved", "gone", "replaced"] {
        fs::write(dir.path().join("dir").join(file), file).unwrap();
    }
    let first = serve(dir.path(), Arc::clone(&notes) as Arc<dyn Ledger>);
    let parent = first.lookup(ROOT, name("dir")).unwrap().attr.ino.0;
    let [moved, gone, replaced] = ["moved", "gone", "replaced"].map(|file| {
        let number = first.lookup(parent, name(file)).unwrap().attr.ino.0;
        first.open(&caller(false), number, OpenFlags(libc::O_RDWR)).unwrap();
        number
    });
    let end = |parent, file| EntryRef { parent, name: name(file) };
    first.rename(&caller(false), end(parent, "moved"), end(ROOT, "new"), RenameFlags::empty()).unwrap();
    first.unlink(&caller(false), parent, name("gone"), false).unwrap();
    first.rename(&caller(false), end(ROOT, "dir"), end(ROOT, "other"), RenameFlags::empty()).unwrap();
    drop(first);
    fs::remove_file(dir.path().join("other/replaced")).unwrap();
    fs::write(dir.path().join("other/replaced"), "another").unwrap();

    let second = next(dir.path(), &notes);
    assert_eq!(text(&second, moved).unwrap(), "moved");
    assert_eq!(text(&second, gone).unwrap(), "gone");
    assert_eq!(second.getattr(gone).unwrap().nlink, 0);
    let flags = (WriteFlags::empty(), OpenFlags(libc::O_RDWR));
    assert_eq!(second.write(&caller(false), gone, 0, b"G", flags).unwrap(), 1);
    assert_eq!(text(&second, gone).unwrap(), "Gone");
    assert_eq!(errno(text(&second, replaced)), libc::ESTALE);
    assert_eq!(errno(second.getattr(4_000_000_000)), libc::ESTALE);
    // The name leads to the new file, which is another node or has another generation.
    let found = second.lookup(parent, name("replaced")).unwrap();
    assert!(found.attr.ino.0 != replaced || found.generation > 0);
}

#[test]
fn only_open_files_are_kept_until_their_last_release() {
    let (dir, notes) = (TempDir::new().unwrap(), Arc::new(Notes::default()));
    let worker = serve(dir.path(), Arc::clone(&notes) as Arc<dyn Ledger>);
    let make = |file| {
        let flags = libc::O_RDWR | libc::O_EXCL;
        worker.create(&caller(false), ROOT, name(file), (0o644, 0o022), flags).unwrap().0.attr.ino.0
    };
    let (open, closed) = (make("open"), make("closed"));
    worker.open(&caller(false), open, OpenFlags(libc::O_RDONLY)).unwrap();
    worker.release(&caller(false), closed, FileHandle(0), OpenFlags(libc::O_RDWR));
    for file in ["open", "closed"] {
        worker.unlink(&caller(false), ROOT, name(file), false).unwrap();
    }
    let kept = || notes.kept.lock().unwrap().iter().map(|k| k.0).collect::<Vec<_>>();
    assert_eq!(kept(), [open]);
    worker.release(&caller(false), open, FileHandle(0), OpenFlags(libc::O_RDWR));
    assert_eq!(kept(), [open]);
    // Another worker may have counted this one.
    worker.release(&caller(true), open, FileHandle(0), OpenFlags(libc::O_RDONLY));
    assert_eq!(kept(), [open]);
    worker.release(&caller(false), open, FileHandle(0), OpenFlags(libc::O_RDONLY));
    assert_eq!(kept(), Vec::<u64>::new());
}

#[test]
fn resent_requests_that_were_executed_are_accepted() {
    let dir = TempDir::new().unwrap();
    let worker = serve(dir.path(), Arc::new(NoLedger));
    let make = |again, file: &str, kind| worker.make(&caller(again), ROOT, name(file), kind, 0o755, 0);
    make(false, "dir", NewNode::Directory).unwrap();
    assert_eq!(errno(make(false, "dir", NewNode::Directory)), libc::EEXIST);
    make(true, "dir", NewNode::Directory).unwrap();
    assert_eq!(errno(make(true, "dir", NewNode::Node(libc::S_IFREG, 0))), libc::EEXIST);
    make(false, "link", NewNode::Symlink(Path::new("here"))).unwrap();
    make(true, "link", NewNode::Symlink(Path::new("here"))).unwrap();
    assert_eq!(errno(make(true, "link", NewNode::Symlink(Path::new("there")))), libc::EEXIST);

    let create =
        |again| worker.create(&caller(again), ROOT, name("file"), (0o644, 0), libc::O_WRONLY | libc::O_EXCL);
    let number = create(false).unwrap().0.attr.ino.0;
    assert_eq!(errno(create(false)), libc::EEXIST);
    assert_eq!(create(true).unwrap().0.attr.ino.0, number);
    worker.link(&caller(false), number, ROOT, name("second")).unwrap();
    worker.link(&caller(true), number, ROOT, name("second")).unwrap();

    let append = |again, offset| {
        let flags = (WriteFlags::empty(), OpenFlags(libc::O_WRONLY | libc::O_APPEND));
        worker.write(&caller(again), number, offset, b"record", flags).unwrap()
    };
    assert_eq!([append(false, 0), append(true, 0), append(true, 6)], [6, 6, 6]);
    assert_eq!(fs::read(dir.path().join("file")).unwrap(), b"recordrecord");
    // The worker died with a part of the record written.
    fs::write(dir.path().join("file"), "recordrec").unwrap();
    assert_eq!(append(true, 6), 6);
    assert_eq!(fs::read(dir.path().join("file")).unwrap(), b"recordrecord");
    // Somebody else's bytes are no part of it.
    fs::write(dir.path().join("file"), "recordoth").unwrap();
    assert_eq!(append(true, 6), 6);
    assert_eq!(fs::read(dir.path().join("file")).unwrap(), b"recordothrecord");

    let end = |file| EntryRef { parent: ROOT, name: name(file) };
    let rename = |again, flags| worker.rename(&caller(again), end("second"), end("third"), flags);
    rename(false, RenameFlags::empty()).unwrap();
    assert_eq!(errno(rename(false, RenameFlags::empty())), libc::ENOENT);
    rename(true, RenameFlags::empty()).unwrap();
    assert_eq!(errno(rename(true, RenameFlags::EXCHANGE)), libc::EIO);
    let unlink = |again| worker.unlink(&caller(again), ROOT, name("third"), false);
    unlink(false).unwrap();
    assert_eq!(errno(unlink(false)), libc::ENOENT);
    unlink(true).unwrap();
    assert_eq!(fs::metadata(dir.path().join("file")).unwrap().nlink(), 1);
}

/// The kernel still has the pages of the file that an earlier worker served.
#[test]
fn a_change_that_the_next_worker_finds_in_a_read_counts_at_the_next_open() {
    let (dir, notes) = (TempDir::new().unwrap(), Arc::new(Notes::default()));
    let file = dir.path().join("file");
    fs::write(&file, "old").unwrap();
    let first = serve(dir.path(), Arc::clone(&notes) as Arc<dyn Ledger>);
    let number = first.lookup(ROOT, name("file")).unwrap().attr.ino.0;
    let open = |fs: &Fs| fs.open(&caller(false), number, OpenFlags(libc::O_RDONLY)).unwrap().1;
    open(&first);
    drop(first);
    fs::write(&file, "new").unwrap();
    let second = next(dir.path(), &notes);
    assert_eq!(text(&second, number).unwrap(), "new");
    assert!(!open(&second).contains(FopenFlags::FOPEN_KEEP_CACHE));
}

/// The kernel can still have the name, spelled otherwise, of a directory that ignores case.
#[test]
fn a_removed_file_that_nobody_has_open_is_not_opened() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("file"), "text").unwrap();
    let worker = serve(dir.path(), Arc::new(NoLedger));
    let number = worker.lookup(ROOT, name("file")).unwrap().attr.ino.0;
    let open = || worker.open(&caller(false), number, OpenFlags(libc::O_WRONLY));
    open().unwrap();
    worker.unlink(&caller(false), ROOT, name("file"), false).unwrap();
    open().unwrap();
    for _ in 0..2 {
        worker.release(&caller(false), number, FileHandle(0), OpenFlags(libc::O_WRONLY));
    }
    assert_eq!(errno(open()), libc::ESTALE);
}

#[test]
fn invalid_names_are_refused() {
    let dir = TempDir::new().unwrap();
    let worker = serve(dir.path(), Arc::new(NoLedger));
    for bad in ["", ".", "..", "a/b", "../x", "a\0b"] {
        assert_eq!(errno(worker.lookup(ROOT, name(bad))), libc::EINVAL, "{bad:?}");
        assert_eq!(errno(worker.unlink(&caller(false), ROOT, name(bad), true)), libc::EINVAL, "{bad:?}");
    }
}
