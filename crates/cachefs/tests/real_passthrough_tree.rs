//! Files with passthrough in a mounted tree on the real kernel.
#![expect(clippy::unwrap_used, reason = "test code")]
#![expect(unsafe_code, reason = "test code: mmap(2) and fcntl(2) have no safe wrappers")]

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;

use eke_cache_mounts::settings::{Compress, PassthroughMode};
use eke_cache_policy::admission::Admission;
use eke_cache_store::{Store, StoreSpec};
use eke_cachefs::fs::{Fs, Options, Serve};
use eke_cachefs::node::NoLedger;
use eke_cachefs::passthrough::Passthrough;
use eke_cachefs::tier::{self, Tier};
use eke_linux::page_cache;
use eke_model::units::Bytes;
use eke_testkit::real::{lacking, skip};
use eke_testkit::tree;
use eke_testkit::wait::wait_for;
use fuser::{BackgroundSession, Session};

/// A mounted directory. Unmounted when dropped.
struct Mounted {
    session: Option<BackgroundSession>,
    dir: tempfile::TempDir,
    tier: Arc<Tier>,
    fs: Arc<Fs>,
    admission: Arc<Admission>,
}

impl Mounted {
    fn new(content: &str, asked: PassthroughMode) -> Self {
        let dir = tempfile::tempdir().unwrap();
        tree::put(dir.path(), "backing/file", content);
        std::fs::create_dir(dir.path().join("mount")).unwrap();
        let slots = tempfile::tempfile().unwrap();
        let admission = Arc::new(Admission::new(asked));
        let store = Arc::new(Store::new(StoreSpec::for_cpus(Bytes::mib(16), 1)).unwrap());
        let options = tier::Options { policy: admission.clone(), ..tier::Options::default() };
        let tier = Arc::new(Tier::new(store, Compress::Sync, options));
        let backing = File::open(dir.path().join("backing")).unwrap();
        let fs = Fs::new(backing.into(), Arc::clone(&tier), Arc::new(NoLedger), Options::default()).unwrap();
        let fs = Arc::new(fs.with_passthrough(Passthrough::new(Arc::clone(&admission), Some(slots))));
        let session =
            Session::new(Serve::new(Arc::clone(&fs)), dir.path().join("mount"), &fuser::Config::default())
                .unwrap();
        Self { session: Some(session.spawn().unwrap()), dir, tier, fs, admission }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("mount").join(name)
    }

    /// The content of a backing file now.
    fn backing(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.path().join("backing").join(name)).unwrap()
    }

    /// Waits until no file is open with passthrough. The kernel reports a close later.
    fn closed(&self) {
        wait_for("the last open with passthrough to end", || self.fs.open_passthrough() == 0);
    }

    /// Reads a whole file. True if the worker got any request for it.
    fn read(&self, file: &File) -> (String, bool) {
        let asked = || {
            let report = self.tier.report();
            report.hits + report.misses + report.recent_hits
        };
        let (before, mut text) = (asked(), vec![0; file.metadata().unwrap().len() as usize + 10]);
        let mut len = 0;
        while let read @ 1.. = file.read_at(&mut text[len..], len as u64).unwrap() {
            len += read;
        }
        text.truncate(len);
        (String::from_utf8(text).unwrap(), asked() > before)
    }
}

/// The first page of a file, shared. Its file may be closed.
struct Mapping(*mut u8);

const PAGE: usize = 4096;

impl Mapping {
    fn new(file: &File, rights: i32) -> Self {
        let none = std::ptr::null_mut();
        // SAFETY: a new mapping at an address that the kernel chooses.
        let at = unsafe { libc::mmap(none, PAGE, rights, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        assert_ne!(at, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        Self(at.cast())
    }

    fn of_writer(file: &File) -> Self {
        Self::new(file, libc::PROT_READ | libc::PROT_WRITE)
    }

    fn store(&self, at: usize, text: &[u8]) {
        assert!(at + text.len() <= PAGE);
        // SAFETY: within the mapping.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), self.0.add(at), text.len()) }
    }

    fn load(&self, at: usize, len: usize) -> Vec<u8> {
        assert!(at + len <= PAGE);
        // SAFETY: within the mapping, which no reference points to.
        (at..at + len).map(|at| unsafe { self.0.add(at).read_volatile() }).collect()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it is not used any more.
        unsafe { libc::munmap(self.0.cast(), PAGE) };
    }
}

/// Clears a flag of an open file.
fn clear_flag(file: &File, flag: i32) {
    // SAFETY: no memory is passed.
    let done = unsafe {
        let flags = libc::fcntl(file.as_raw_fd(), libc::F_GETFL);
        libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags & !flag)
    };
    assert_eq!(done, 0);
}

fn to_read_and_write() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.dir.path().join("mount"), rustix::mount::UnmountFlags::DETACH);
        drop(self.session.take());
    }
}

#[test]
fn a_passthrough_file_has_the_backing_files_content_and_so_has_a_cached_one_later() {
    const NAME: &str = "a_passthrough_file_has_the_backing_files_content_and_so_has_a_cached_one_later";
    if let Some(why) = lacking(&["/dev/fuse"]) {
        return skip(NAME, &why);
    }
    let text = "a line of text that repeats\n".repeat(20_000);
    let mounted = Mounted::new(&text, PassthroughMode::Always);
    // The first one chooses for all; one that reads and writes would choose the mount's pages.
    let reader = File::open(mounted.path("file")).unwrap();
    let first = OpenOptions::new().read(true).write(true).open(mounted.path("file")).unwrap();
    if let Some(why) = mounted.admission.report().no_passthrough {
        return skip(NAME, &why);
    }
    assert_eq!(mounted.fs.open_passthrough(), 1);
    assert!(mounted.read(&first) == (text.clone(), false));

    // Writes, appends and truncation through the mount; some of them bypass this process.
    first.write_all_at(b"another", 2).unwrap();
    let mut end = OpenOptions::new().append(true).open(mounted.path("file")).unwrap();
    end.write_all(b"the end").unwrap();
    let now = format!("a another{}the end", &text[9..]);
    assert!(mounted.backing("file") == now && mounted.read(&first) == (now.clone(), false));
    first.set_len(100).unwrap();
    assert_eq!(mounted.read(&first), (now[..100].to_owned(), false));
    drop((reader, first, end));

    // A file created with passthrough exists in the backing directory too.
    let mut made = File::options().write(true).create_new(true).open(mounted.path("made")).unwrap();
    made.write_all(b"made here").unwrap();
    assert_eq!((mounted.backing("made").as_str(), mounted.fs.open_passthrough() > 0), ("made here", true));
    drop(made);

    // No more passthrough: a closed file is cached from its next open on, and shows changes made meanwhile.
    mounted.admission.no_passthrough("for this test".to_owned());
    mounted.closed();
    let mut cached = File::open(mounted.path("file")).unwrap();
    assert_eq!(mounted.read(&cached), (now[..100].to_owned(), true));
    let mut through = String::new();
    cached.read_to_string(&mut through).unwrap();
    assert_eq!(through, mounted.backing("file"));
}

/// Copies, archives and compilers write files that nobody has read; each of their writes would be a request.
#[test]
fn an_empty_file_is_written_by_the_kernel_and_cached_from_its_next_open_on() {
    const NAME: &str = "an_empty_file_is_written_by_the_kernel_and_cached_from_its_next_open_on";
    if let Some(why) = lacking(&["/dev/fuse"]) {
        return skip(NAME, &why);
    }
    let mounted = Mounted::new("old", PassthroughMode::Auto);
    let mut new = File::options().write(true).create_new(true).open(mounted.path("new")).unwrap();
    if let Some(why) = mounted.admission.report().no_passthrough {
        return skip(NAME, &why);
    }
    assert_eq!(mounted.fs.open_passthrough(), 1, "created");
    new.write_all(b"written here").unwrap();
    let reader = File::open(mounted.path("new")).unwrap();
    assert_eq!(mounted.read(&reader), ("written here".to_owned(), false), "while it is written");
    drop((new, reader));
    mounted.closed();
    let reader = File::open(mounted.path("new")).unwrap();
    assert_eq!(mounted.read(&reader), ("written here".to_owned(), true), "at the next open");
    drop(reader);

    let mut end = OpenOptions::new().append(true).open(mounted.path("new")).unwrap();
    assert_eq!(mounted.fs.open_passthrough(), 0, "it has blocks that are of use");
    end.write_all(b", twice").unwrap();
    let reader = File::open(mounted.path("new")).unwrap();
    assert_eq!(mounted.read(&reader).0, "written here, twice");
    drop((end, reader));

    let mut again = File::options().write(true).truncate(true).open(mounted.path("file")).unwrap();
    assert_eq!(mounted.fs.open_passthrough(), 1, "emptied by its open");
    again.write_all(b"new").unwrap();
    drop(again);
    mounted.closed();
    assert_eq!(std::fs::read_to_string(mounted.path("file")).unwrap(), "new");
}

/// Programs that share memory by a file close it when it is mapped.
#[test]
fn a_mapping_that_outlives_its_open_and_later_opens_see_each_others_stores() {
    const NAME: &str = "a_mapping_that_outlives_its_open_and_later_opens_see_each_others_stores";
    if let Some(why) = lacking(&["/dev/fuse"]) {
        return skip(NAME, &why);
    }
    let mounted = Mounted::new("", PassthroughMode::Auto);
    // A new file, and one that uses passthrough because another writes it.
    let created = to_read_and_write().create_new(true).open(mounted.path("new")).unwrap();
    let writer = File::options().write(true).open(mounted.path("file")).unwrap();
    if let Some(why) = mounted.admission.report().no_passthrough {
        return skip(NAME, &why);
    }
    let followed = to_read_and_write().open(mounted.path("file")).unwrap();
    assert_eq!(mounted.fs.open_passthrough(), 1);
    drop(writer);
    for (name, opened) in [("new", created), ("file", followed)] {
        opened.set_len(PAGE as u64).unwrap();
        let first = Mapping::of_writer(&opened);
        drop(opened);
        if name == "file" {
            mounted.closed();
        }
        first.store(0, b"first");
        for n in 0..20_u8 {
            let later = to_read_and_write().open(mounted.path(name)).unwrap();
            let second = Mapping::of_writer(&later);
            first.store(0, &[n]);
            second.store(100, &[n]);
            let mut read = [0];
            later.read_exact_at(&mut read, 0).unwrap();
            assert_eq!((second.load(0, 1), first.load(100, 1), read), (vec![n], vec![n], [n]), "{name}");
        }
        drop(first);
        let file = File::open(mounted.path(name)).unwrap();
        file.sync_all().unwrap();
        let backing = mounted.backing(name).into_bytes();
        assert_eq!((backing[0], &backing[1..5], backing[100]), (19, &b"irst"[..], 19), "{name}");
    }
}

#[test]
fn a_file_is_cached_again_when_no_mapping_is_left() {
    const NAME: &str = "a_file_is_cached_again_when_no_mapping_is_left";
    if let Some(why) = lacking(&["/dev/fuse"]) {
        return skip(NAME, &why);
    }
    let mounted = Mounted::new(&"x".repeat(PAGE), PassthroughMode::Always);
    let reader = File::open(mounted.path("file")).unwrap();
    if let Some(why) = mounted.admission.report().no_passthrough {
        return skip(NAME, &why);
    }
    let left = Mapping::new(&reader, libc::PROT_READ);
    drop(reader);
    mounted.closed();

    // Mapped for reading only: a store by another mapping shows at once.
    let writer = to_read_and_write().open(mounted.path("file")).unwrap();
    assert_eq!(mounted.fs.open_passthrough(), 1, "as the mapping");
    Mapping::of_writer(&writer).store(7, b"new");
    assert_eq!(left.load(7, 3), b"new");
    drop((writer, left));
    mounted.closed();
    let writer = to_read_and_write().open(mounted.path("file")).unwrap();
    assert_eq!(mounted.fs.open_passthrough(), 0, "nothing is mapped any more");
    assert_eq!(&mounted.read(&writer).0[7..10], "new");
}

/// Logs and databases write so, and the file may be open elsewhere.
#[test]
fn a_synced_write_of_a_passthrough_file_is_on_the_disk_when_it_returns() {
    const NAME: &str = "a_synced_write_of_a_passthrough_file_is_on_the_disk_when_it_returns";
    if let Some(why) = lacking(&["/dev/fuse"]) {
        return skip(NAME, &why);
    }
    let mounted = Mounted::new("", PassthroughMode::Auto);
    let open = File::options().write(true).create_new(true).open(mounted.path("new")).unwrap();
    if let Some(why) = mounted.admission.report().no_passthrough {
        return skip(NAME, &why);
    }
    let backing = File::open(mounted.dir.path().join("backing/new")).unwrap();
    let is_dirty = || page_cache::counts(&backing, 0, 1 << 20).map(|counts| counts.dirty > 0);
    open.write_all_at(b"unsynced", 0).unwrap();
    if rustix::fs::fcntl_get_seals(&backing).is_ok() || !is_dirty().unwrap_or(false) {
        return skip(NAME, "no disk, or no cachestat(2) to see it by");
    }
    let flags = [(true, libc::O_SYNC), (true, libc::O_DSYNC), (false, libc::O_DIRECT | libc::O_DSYNC)];
    for (append, flags) in flags {
        let mut options = File::options();
        let mut synced =
            options.write(true).append(append).custom_flags(flags).open(mounted.path("new")).unwrap();
        synced.write_all(b"8 bytes.").unwrap();
        assert!(!is_dirty().unwrap(), "{append} {flags:#o}");
        open.write_all_at(b"unsynced", 0).unwrap();
    }
    let mut unsynced = File::options().append(true).open(mounted.path("new")).unwrap();
    unsynced.write_all(b"8 bytes.").unwrap();
    assert!(is_dirty().unwrap() && mounted.fs.open_passthrough() == 1);
}

/// dd(1) clears `O_DIRECT` for what is left at the end.
#[test]
fn flags_that_are_cleared_after_open_are_cleared_below_too() {
    const NAME: &str = "flags_that_are_cleared_after_open_are_cleared_below_too";
    if let Some(why) = lacking(&["/dev/fuse"]) {
        return skip(NAME, &why);
    }
    let mounted = Mounted::new("old", PassthroughMode::Auto);
    let direct = File::options()
        .write(true)
        .create_new(true)
        .custom_flags(libc::O_DIRECT)
        .open(mounted.path("direct"))
        .unwrap();
    clear_flag(&direct, libc::O_DIRECT);
    direct.write_all_at(&[b'x'; 1001], 0).unwrap();
    assert_eq!(mounted.backing("direct"), "x".repeat(1001));

    let open_by_passthrough = File::options().write(true).create_new(true).open(mounted.path("log")).unwrap();
    if let Some(why) = mounted.admission.report().no_passthrough {
        return skip(NAME, &why);
    }
    open_by_passthrough.write_all_at(b"aaaaaaaa", 0).unwrap();
    assert_eq!(mounted.fs.open_passthrough(), 1);
    let mut log = File::options().append(true).open(mounted.path("log")).unwrap();
    log.write_all(b"end").unwrap();
    clear_flag(&log, libc::O_APPEND);
    log.write_all_at(b"BB", 2).unwrap();
    assert_eq!(mounted.backing("log"), "aaBBaaaaend");

    // Reads of this open come to the worker, and are of the present content.
    let mut options = File::options();
    let reader = options.read(true).custom_flags(libc::O_DIRECT).open(mounted.path("log")).unwrap();
    for text in ["one", "two"] {
        open_by_passthrough.write_all_at(text.as_bytes(), 0).unwrap();
        assert_eq!(&mounted.read(&reader).0[..4], &format!("{text}B")[..]);
    }
    assert_eq!(mounted.fs.open_passthrough(), 1);

    let new =
        File::options().read(true).append(true).create_new(true).open(mounted.path("appended")).unwrap();
    (&new).write_all(b"aaaaaaaa").unwrap();
    clear_flag(&new, libc::O_APPEND);
    new.write_all_at(b"BB", 2).unwrap();
    assert_eq!(mounted.backing("appended"), "aaBBaaaa");
}
