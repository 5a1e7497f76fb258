//! An ext4 on a slow disk, cold whenever one says.

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

/// Fields are dropped in this order: the disk goes before its directory, and then the machine is looked at.
pub struct Stage {
    pub disk: SlowDisk,
    dir: TempDir,
    _machine: SameDisks,
}

/// A disk that is quick enough for a test.
pub fn quick() -> Profile {
    Profile { rate: 400_000_000, iops: Some(5_000), depth: 8, ..Profile::plain() }
}

impl Stage {
    /// `None`, with the reason said, where there can be none.
    pub fn set(test: &str, profile: Profile) -> Option<Self> {
        let why = lacking(&["/dev/fuse", "/dev/loop-control"]);
        if let Some(why) = why.or_else(|| no_program(&["losetup", "mkfs.ext4", "mount", "umount"])) {
            skip(test, &why);
            return None;
        }
        let machine = SameDisks::start();
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("mnt")).unwrap();
        let disk =
            SlowDisk::attach(&Root::host(), SlowDiskSpec::new(Image::Memory, Bytes::mib(256), profile))
                .unwrap();
        let stage = Self { disk, dir, _machine: machine };
        let lazy = "lazy_itable_init=0,lazy_journal_init=0";
        run("mkfs.ext4", &["-q", "-E", lazy, "-O", "^has_journal", &stage.device().display().to_string()]);
        stage.mount();
        Some(stage)
    }

    pub fn device(&self) -> PathBuf {
        self.disk.device().to_owned()
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

    /// Drops all that the kernel has of it.
    pub fn cool(&self) {
        run("umount", &[&self.top().display().to_string()]);
        // Who made a mount namespace meanwhile has a copy of the mount, and with it all that is cached.
        let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
        wait_for("nobody else to have it mounted", || open(self.device(), flags, Mode::empty()).is_ok());
        self.mount();
    }

    /// A file of so many bytes, none of which are zeroes.
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

/// Pages by their first and the one after their last.
pub fn pages(spans: &[(u64, u64)]) -> Pages {
    spans.iter().filter_map(|(first, end)| Span::new(*first, *end)).collect()
}

/// A request of what is there now.
pub fn request(path: &Path, pages: Pages) -> ReadRequest {
    let meta = fs::symlink_metadata(path).unwrap();
    let (kind, size) = if meta.is_dir() { (Kind::Directory, 0) } else { (Kind::File, meta.len()) };
    let mtime_ns = meta.mtime() * 1_000_000_000 + meta.mtime_nsec();
    let stamp = Stamp { dev: meta.dev(), ino: meta.ino(), size, mtime_ns };
    ReadRequest { path: path.to_owned(), kind, stamp, pages }
}

/// All pages of a file.
pub fn whole(path: &Path) -> ReadRequest {
    let bytes = fs::metadata(path).unwrap().len();
    request(path, pages(&[(0, bytes.div_ceil(PAGE_BYTES))]))
}

/// Which of so many pages are in memory.
pub fn resident(file: &File, count: u64) -> BTreeSet<u64> {
    let mut there = BTreeSet::new();
    let mut look = vec![(0, count)];
    while let Some((first, pages)) = look.pop() {
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
            there.extend(first..first + pages);
        } else if missing < pages {
            look.extend([(first, pages / 2), (first + pages / 2, pages - pages / 2)]);
        }
    }
    there
}

/// Waits for the end by the descriptor, as a loop would.
pub fn wait(fetch: &Fetch) -> eke_prefetchd::read::Report {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let time = Timespec { tv_sec: LONG.as_secs() as i64, tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(fetch, PollFlags::IN)], Some(&time)).unwrap();
    assert_eq!(ready, 1, "it never ends: {:?}", fetch.report());
    assert!(fetch.is_over());
    fetch.report()
}
