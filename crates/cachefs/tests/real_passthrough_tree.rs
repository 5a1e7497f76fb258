//! Files with passthrough in a mounted tree on the real kernel.
#![expect(clippy::unwrap_used, reason = "test code")]

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use eke_cache_mounts::settings::{Compress, PassthroughMode};
use eke_cache_policy::admission::Admission;
use eke_cache_store::{Store, StoreSpec};
use eke_cachefs::fs::{Fs, Options, Serve};
use eke_cachefs::node::NoLedger;
use eke_cachefs::passthrough::Passthrough;
use eke_cachefs::tier::{self, Tier};
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
    drop((first, end));

    // A file created with passthrough exists in the backing directory too.
    let mut made =
        File::options().read(true).write(true).create_new(true).open(mounted.path("made")).unwrap();
    made.write_all(b"made here").unwrap();
    assert_eq!((mounted.backing("made").as_str(), mounted.fs.open_passthrough() > 0), ("made here", true));
    drop(made);

    // No more passthrough: a closed file is cached from its next open on, and shows changes made meanwhile.
    mounted.admission.no_passthrough("for this test".to_owned());
    wait_for("the last open with passthrough to end", || mounted.fs.open_passthrough() == 0);
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
    let closed = || wait_for("the last open with passthrough to end", || mounted.fs.open_passthrough() == 0);
    closed();
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
    closed();
    assert_eq!(std::fs::read_to_string(mounted.path("file")).unwrap(), "new");
}
