//! Files with passthrough on the real kernel: a file system of one file whose every read is counted.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, UNIX_EPOCH};

use eke_cache_policy::admission::{Admission, DataPath, PassthroughMode};
use eke_cachefs::passthrough::{NewOpen, Passthrough};
use eke_testkit::real::{lacking, skip};
use eke_testkit::wait::wait_for;
use fuser::{
    BackgroundSession, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen,
    Request, Session,
};

const NODE: INodeNo = INodeNo(2);
const SIZE: usize = 1 << 20;

/// The server's state as the test sees it.
#[derive(Debug)]
struct Shared {
    passthrough: Passthrough,
    by_passthrough: AtomicBool,
    reads: AtomicU64,
    released: AtomicU64,
}

#[derive(Debug)]
struct OneFile {
    backing: File,
    shared: Arc<Shared>,
}

fn attributes(ino: INodeNo) -> FileAttr {
    let is_dir = ino == INodeNo::ROOT;
    FileAttr {
        ino,
        size: if is_dir { 0 } else { SIZE as u64 },
        blocks: 1,
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
        flags: 0,
        blksize: 4096,
    }
}

const TTL: Duration = Duration::from_secs(1);

impl Filesystem for OneFile {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let asked = config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok()
            && config.set_max_stack_depth(1).is_ok();
        if !asked {
            self.shared.passthrough.admission.no_passthrough("the kernel has none".to_owned());
        }
        Ok(())
    }

    fn lookup(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEntry) {
        reply.entry(&TTL, &attributes(NODE), Generation(0));
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&TTL, &attributes(ino));
    }

    fn open(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let passthrough = &self.shared.passthrough;
        let data_path = |_| {
            if self.shared.by_passthrough.load(SeqCst) { DataPath::Passthrough } else { DataPath::Cached }
        };
        let refused = |e: io::Error| passthrough.admission.no_passthrough(e.to_string());
        let backing = Some(self.backing.as_fd());
        let new = NewOpen { node: ino.0, reply: &reply, backing, leaves: false };
        match passthrough.opens.open(&new, data_path, refused) {
            Some(id) => reply.opened_passthrough(FileHandle(0), FopenFlags::empty(), &id),
            None => reply.opened(FileHandle(0), FopenFlags::empty()),
        }
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
        self.shared.reads.fetch_add(1, SeqCst);
        let mut data = vec![0; size as usize];
        let read = self.backing.read_at(&mut data, offset).unwrap();
        reply.data(&data[..read]);
    }

    fn release(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.shared.passthrough.opens.release(ino.0);
        self.shared.released.fetch_add(1, SeqCst);
        reply.ok();
    }
}

/// A mounted file and its content. Unmounted when dropped.
struct Mounted {
    session: Option<BackgroundSession>,
    dir: tempfile::TempDir,
    content: Vec<u8>,
    shared: Arc<Shared>,
}

impl Mounted {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let content: Vec<u8> =
            (0..SIZE as u32 / 4).flat_map(|n| (n.wrapping_mul(2_654_435_761)).to_le_bytes()).collect();
        std::fs::create_dir(dir.path().join("mount")).unwrap();
        let backing = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(dir.path().join("backing"))
            .unwrap();
        backing.write_all_at(&content, 0).unwrap();
        let shared = Arc::new(Shared {
            passthrough: Passthrough::new(Arc::new(Admission::new(PassthroughMode::Always)), None),
            by_passthrough: AtomicBool::new(true),
            reads: AtomicU64::new(0),
            released: AtomicU64::new(0),
        });
        let server = OneFile { backing, shared: Arc::clone(&shared) };
        let session = Session::new(server, dir.path().join("mount"), &fuser::Config::default()).unwrap();
        Self { session: Some(session.spawn().unwrap()), dir, content, shared }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("mount/file")
    }

    fn open(&self) -> io::Result<File> {
        File::open(self.path())
    }

    /// Reads the whole file and compares it. Returns the server's reads meanwhile.
    fn compare(&self, file: &File) -> u64 {
        let before = self.shared.reads.load(SeqCst);
        let mut data = vec![0; SIZE];
        file.read_exact_at(&mut data, 0).unwrap();
        assert!(data == self.content, "other bytes than in the backing file");
        self.shared.reads.load(SeqCst) - before
    }

    /// The kernel reports a close later.
    fn wait_for_releases(&self, releases: u64) {
        wait_for("the kernel to report a close", || self.shared.released.load(SeqCst) >= releases);
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.dir.path().join("mount"), rustix::mount::UnmountFlags::DETACH);
        drop(self.session.take());
    }
}

#[test]
fn passthrough_reads_bypass_the_server_and_opens_of_both_modes_never_meet() {
    const NAME: &str = "passthrough_reads_bypass_the_server_and_opens_of_both_modes_never_meet";
    if let Some(why) = lacking(&["/dev/fuse"]) {
        return skip(NAME, &why);
    }
    let mounted = Mounted::new();
    let first = mounted.open().unwrap();
    if mounted.shared.passthrough.opens.passthrough() == 0 {
        return skip(NAME, &mounted.shared.passthrough.admission.report().no_passthrough.unwrap());
    }
    assert_eq!(mounted.compare(&first), 0);

    // While the file is open, later opens use passthrough too, also for writing, whatever `data_path` returns.
    mounted.shared.by_passthrough.store(false, SeqCst);
    let second = OpenOptions::new().read(true).write(true).open(mounted.path()).unwrap();
    second.write_all_at(&mounted.content[..9000], 0).unwrap();
    assert_eq!(mounted.compare(&second), 0);
    drop(first);
    mounted.wait_for_releases(1);
    assert_eq!(mounted.compare(&mounted.open().unwrap()), 0);
    drop(second);
    mounted.wait_for_releases(3);

    // After the last close it is cached, and stays so while it is open.
    let cached = mounted.open().unwrap();
    assert!(mounted.compare(&cached) > 0);
    mounted.shared.by_passthrough.store(true, SeqCst);
    let too = mounted.open().unwrap();
    mounted.compare(&too);
    assert_eq!(mounted.shared.passthrough.opens.passthrough(), 0);
    drop((cached, too));
    mounted.wait_for_releases(5);

    assert_eq!(mounted.compare(&mounted.open().unwrap()), 0);
    assert_eq!(mounted.shared.passthrough.admission.report().no_passthrough, None);
}
