//! A read that waits for the backing directory delays no read of stored blocks: on the real kernel, over a file system whose
//! disk waits for the test.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, UNIX_EPOCH};

use eke_cache_mounts::settings::Compress;
use eke_cache_store::{Store, StoreSpec};
use eke_cachefs::fs::{Fetchers, Fs, Options, Serve};
use eke_cachefs::node::NoLedger;
use eke_cachefs::tier::{self, Tier};
use eke_model::units::Bytes;
use eke_testkit::real::{lacking, skip};
use eke_testkit::wait::wait_for;
use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, Generation, INodeNo,
    LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEntry, Request, Session,
};
use rustix::mount::{UnmountFlags, unmount};
use tempfile::TempDir;

const LONG: Duration = Duration::from_secs(30);
const LEN: u64 = 64 << 10;
const FREE: u64 = 2;
const GATED: u64 = 3;

/// What reads of the gated file wait for.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
    reads: AtomicUsize,
}

impl Gate {
    fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    fn is_open(&self) -> bool {
        *self.open.lock().unwrap()
    }

    /// Waits until it is open, at most as long as a fault takes.
    fn pass(&self) {
        let open = self.open.lock().unwrap();
        let (mut open, _) = self.opened.wait_timeout_while(open, LONG, |open| !*open).unwrap();
        *open = true;
    }
}

/// Two files of one block each: one is always readable, the other when the gate is open.
struct Disk {
    gate: Arc<Gate>,
    asked: Mutex<Sender<()>>,
}

fn attr(ino: u64) -> FileAttr {
    let is_dir = ino == 1;
    FileAttr {
        ino: INodeNo(ino),
        size: if is_dir { 0 } else { LEN },
        blocks: LEN / 512,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: if is_dir { FileType::Directory } else { FileType::RegularFile },
        perm: if is_dir { 0o755 } else { 0o644 },
        nlink: 1,
        uid: rustix::process::getuid().as_raw(),
        gid: rustix::process::getgid().as_raw(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

impl Filesystem for Disk {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match name.to_str() {
            Some("free") => reply.entry(&LONG, &attr(FREE), Generation(0)),
            Some("gated") => reply.entry(&LONG, &attr(GATED), Generation(0)),
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&LONG, &attr(ino.0));
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
        let data = vec![ino.0 as u8; u64::from(size).min(LEN.saturating_sub(offset)) as usize];
        if ino.0 != GATED {
            return reply.data(&data);
        }
        self.gate.reads.fetch_add(1, Ordering::SeqCst);
        let gate = Arc::clone(&self.gate);
        self.asked.lock().unwrap().send(()).unwrap();
        spawn(move || {
            gate.pass();
            reply.data(&data);
        });
    }
}

/// The disk, and a mount over it with one session, one fetcher, and one answering thread.
struct Mounted {
    gate: Arc<Gate>,
    asked: Receiver<()>,
    tier: Arc<Tier>,
    sessions: Vec<(BackgroundSession, PathBuf)>,
    dir: TempDir,
}

impl Mounted {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let (backing, over) = (dir.path().join("backing"), dir.path().join("over"));
        [&backing, &over].into_iter().for_each(|place| std::fs::create_dir(place).unwrap());
        let (gate, (sender, asked)) = (Arc::new(Gate::default()), channel());
        let disk = Disk { gate: Arc::clone(&gate), asked: Mutex::new(sender) };
        let store = Arc::new(Store::new(StoreSpec::for_cpus(Bytes::mib(16), 1)).unwrap());
        let tier = Arc::new(Tier::new(store, Compress::Sync, tier::Options::default()));
        let sessions = vec![mount(disk, &backing), mount(serve(&backing, &tier), &over)];
        Self { gate, asked, tier, sessions, dir }
    }

    /// Reads a file past the kernel's cache.
    fn read(&self, name: &str) -> Vec<u8> {
        read(&self.dir.path().join("over").join(name))
    }

    /// Waits until a reader waits for another's read.
    fn until_one_waits(&self) {
        wait_for("the second reader to ask", || self.tier.report().waits > 0);
    }

    fn read_in_a_thread(&self, name: &str) -> JoinHandle<Vec<u8>> {
        let file = self.dir.path().join("over").join(name);
        spawn(move || read(&file))
    }
}

fn mount(fs: impl Filesystem, place: &Path) -> (BackgroundSession, PathBuf) {
    let session = Session::new(fs, place, &Config::default()).and_then(Session::spawn).unwrap();
    (session, place.to_owned())
}

fn serve(backing: &Path, tier: &Arc<Tier>) -> Serve {
    let root = File::open(backing).unwrap().into();
    let fs = Fs::new(root, Arc::clone(tier), Arc::new(NoLedger), Options::default()).unwrap();
    let (fetchers, fs) = (Fetchers::new(), Arc::new(fs));
    let serving = Serve::with_fetchers(Arc::clone(&fs), &fetchers);
    let start = |name: &str, body| std::thread::Builder::new().name(name.to_owned()).spawn(body).map(drop);
    fetchers.start(&fs, (1, 1), start).unwrap();
    serving
}

fn read(file: &Path) -> Vec<u8> {
    let file = File::options().read(true).custom_flags(libc::O_DIRECT).open(file).unwrap();
    let mut bytes = vec![0; LEN as usize];
    let read = file.read_at(&mut bytes, 0).unwrap();
    bytes.truncate(read);
    bytes
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.gate.open();
        for (session, place) in self.sessions.drain(..).rev() {
            let _ = unmount(place, UnmountFlags::DETACH);
            drop(session);
        }
    }
}

#[test]
fn stored_blocks_are_read_while_others_wait_for_the_disk() {
    const NAME: &str = "stored_blocks_are_read_while_others_wait_for_the_disk";
    if let Some(why) = lacking(&["/dev/fuse"]) {
        return skip(NAME, &why);
    }
    let mounted = Mounted::new();
    let whole = |ino: u64| vec![ino as u8; LEN as usize];
    assert!(mounted.read("free") == whole(FREE));

    let first = mounted.read_in_a_thread("gated");
    mounted.asked.recv_timeout(LONG).unwrap();
    let second = mounted.read_in_a_thread("gated");
    mounted.until_one_waits();
    assert!(mounted.read("free") == whole(FREE));
    assert!(!mounted.gate.is_open(), "the read of what is held did not wait for the gate");

    mounted.gate.open();
    assert!(first.join().unwrap() == whole(GATED) && second.join().unwrap() == whole(GATED));
    assert_eq!(mounted.gate.reads.load(Ordering::SeqCst), 1, "one reader per missing block");
}
