//! An ext4 file system on a slow disk, which can be made cold.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use eke_linux::Root;
use eke_model::units::Bytes;
use eke_prefetch_model::{Kind, PAGE_BYTES, Pages, Span, Stamp};
use eke_prefetchd::file::resident::missing_bytes;
use eke_prefetchd::request::ReadRequest;
use eke_prefetchd::schedule::Fetch;
use eke_slow_disk::{Image, Profile, SlowDisk, SlowDiskSpec};
use eke_testkit::real::{SameDisks, lacking, no_program, skip};
use eke_testkit::wait::wait_for;
use rustix::fs::{Mode, OFlags, open};
use tempfile::TempDir;

/// Longer than anything takes.
pub const LONG: Duration = Duration::from_secs(120);

/// Fields drop in this order: the disk before its directory, and then the machine's disks are compared.
pub struct SlowExt4 {
    pub slow_disk: SlowDisk,
    dir: TempDir,
    _machine: SameDisks,
}

/// A disk that is fast enough for a test.
pub fn fast() -> Profile {
    Profile { rate: 400_000_000, iops: Some(5_000), depth: 8, ..Profile::plain() }
}

impl SlowExt4 {
    /// `None`, with the reason printed, if this machine cannot run it.
    pub fn create(test: &str, profile: Profile) -> Option<Self> {
        let why = lacking(&["/dev/fuse", "/dev/loop-control"]);
        if let Some(why) = why.or_else(|| no_program(&["losetup", "mkfs.ext4", "mount", "umount"])) {
            skip(test, &why);
            return None;
        }
        let machine = SameDisks::start();
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("mnt")).unwrap();
        let slow_disk =
            SlowDisk::attach(&Root::host(), SlowDiskSpec::new(Image::Memory, Bytes::mib(256), profile))
                .unwrap();
        let disk = Self { slow_disk, dir, _machine: machine };
        let lazy = "lazy_itable_init=0,lazy_journal_init=0";
        run("mkfs.ext4", &["-q", "-E", lazy, "-O", "^has_journal", &disk.device().display().to_string()]);
        disk.mount();
        Some(disk)
    }

    pub fn device(&self) -> PathBuf {
        self.slow_disk.device().to_owned()
    }

    pub fn top(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("mnt")
    }

    fn mount(&self) {
        run(
            "mount",
            &["-o", "noatime", &self.device().display().to_string(), &self.top().display().to_string()],
        );
    }

    /// Drops all of its cached data.
    pub fn cool(&self) {
        // A fetch may have a file of it open.
        wait_for("its unmounting", || {
            let output = Command::new("umount").arg(self.top()).output().unwrap();
            if output.status.success() {
                Ok(())
            } else {
                Err(String::from_utf8_lossy(&output.stderr).into_owned())
            }
        });
        // A mount namespace created meanwhile has a copy of the mount, and keeps its cached data.
        let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
        wait_for("no other mount of it", || open(self.device(), flags, Mode::empty()).is_ok());
        self.mount();
    }

    /// A file of this many non-zero bytes.
    pub fn file(&self, name: &str, bytes: u64) -> PathBuf {
        let path = self.top().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = OpenOptions::new().write(true).create_new(true).open(&path).unwrap();
        file.write_all(&vec![b'x'; bytes as usize]).unwrap();
        file.sync_all().unwrap();
        path
    }
}

pub fn run(program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Pages from (first, end) pairs.
pub fn pages(spans: &[(u64, u64)]) -> Pages {
    spans.iter().filter_map(|(first, end)| Span::new(*first, *end)).collect()
}

/// A request for the file that is at `path` now.
pub fn request(path: &Path, pages: Pages) -> ReadRequest {
    let meta = fs::symlink_metadata(path).unwrap();
    let (kind, size) = if meta.is_dir() { (Kind::Directory, 0) } else { (Kind::File, meta.len()) };
    let mtime_ns = meta.mtime() * 1_000_000_000 + meta.mtime_nsec();
    let stamp = Stamp { dev: meta.dev(), ino: meta.ino(), size, mtime_ns };
    ReadRequest { path: path.to_owned(), kind, stamp, pages, user: 0, is_own: false }
}

/// All pages of a file.
pub fn whole(path: &Path) -> ReadRequest {
    let bytes = fs::metadata(path).unwrap().len();
    request(path, pages(&[(0, bytes.div_ceil(PAGE_BYTES))]))
}

/// The resident ones of the first `count` pages.
pub fn resident(file: &File, count: u64) -> BTreeSet<u64> {
    let mut present = BTreeSet::new();
    let mut ranges = vec![(0, count)];
    while let Some((first, pages)) = ranges.pop() {
        let missing = missing_bytes(
            Root::host().page_size(),
            file,
            first * PAGE_BYTES,
            pages * PAGE_BYTES,
            count * PAGE_BYTES,
        )
        .unwrap()
            / PAGE_BYTES;
        if missing == 0 {
            present.extend(first..first + pages);
        } else if missing < pages {
            ranges.extend([(first, pages / 2), (first + pages / 2, pages - pages / 2)]);
        }
    }
    present
}

/// Waits for the end with poll(2), as a loop would.
pub fn wait(fetch: &Fetch) -> eke_prefetchd::read::FetchReport {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let time = Timespec { tv_sec: LONG.as_secs() as i64, tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(fetch, PollFlags::IN)], Some(&time)).unwrap();
    assert_eq!(ready, 1, "it never ends: {:?}", fetch.report());
    assert!(fetch.is_over());
    fetch.report()
}
