//! A directory, and nodes that serve it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use eke_cache_mounts::shared::{SharedSettings, SharedStats};
use eke_cache_mounts::status::WarmProgress;
use eke_cache_mounts::warm::{self, WarmEnd};
use eke_cache_mounts::{SocketDirs, mounts};
use eke_model::units::Bytes;
use eke_testkit::real::{lacking, skip};
use eke_testkit::wait::wait_for;
use tempfile::TempDir;

use crate::common::NEEDS;
use crate::common::content::{Content, stats};
use crate::common::mount::{Mount, MountSpec, scratch};
use crate::engine;

pub const FILES: u64 = 24;
pub const SIZE: usize = 300_000;
pub const CONTENT: Content = Content { files: FILES, size: SIZE };

/// Skips a test where it cannot run.
pub fn cannot_run(name: &str) -> bool {
    let why = lacking(&NEEDS).or_else(engine::cannot_run);
    why.iter().for_each(|why| skip(name, why));
    why.is_some()
}

/// The directory that all nodes read.
pub struct Origin {
    dir: PathBuf,
    _scratch: TempDir,
}

impl Origin {
    /// With files that changed long ago, so that they may be shared.
    pub fn new() -> Self {
        let scratch = scratch();
        let dir = scratch.path().join("backing");
        fs::create_dir(&dir).unwrap();
        let origin = Self { dir, _scratch: scratch };
        (0..FILES).for_each(|n| fs::write(origin.file(n), CONTENT.of(n, 0)).unwrap());
        // What waits for its writeback could be stores through a mapping, and is not shared.
        (0..FILES).for_each(|n| File::open(origin.file(n)).unwrap().sync_all().unwrap());
        origin.settle();
        origin
    }

    pub fn file(&self, n: u64) -> PathBuf {
        self.dir.join(n.to_string())
    }

    /// Waits until the last change of all files is old enough to be shared: two ticks of the file system's clock.
    pub fn settle(&self) {
        use std::os::unix::fs::MetadataExt;
        let changed = |n| {
            fs::metadata(self.file(n))
                .map_or(Duration::ZERO, |meta| Duration::new(meta.ctime() as u64, meta.ctime_nsec() as u32))
        };
        let last = (0..FILES).map(changed).max().unwrap();
        let until = SystemTime::UNIX_EPOCH + last + Duration::from_millis(20);
        wait_for("the clock", || SystemTime::now() > until);
    }

    /// A node with this engine. Its reads wait for the tier: the origin's own time depends on this machine's disk.
    pub fn node(&self, url: &str, change: impl FnOnce(&mut SharedSettings)) -> Mount {
        let mut shared = settings(url);
        change(&mut shared);
        node(&self.dir, &["--patient"], Some(shared))
    }
}

/// A tier of this engine.
pub fn settings(url: &str) -> SharedSettings {
    SharedSettings {
        url: url.to_owned(),
        name: Some("test".into()),
        password: None,
        ca: None,
        cert: None,
        private_key: None,
        key: None,
        bandwidth: Bytes::mib(500),
    }
}

/// A node that serves this directory.
pub fn node(dir: &Path, args: &[&str], shared: Option<SharedSettings>) -> Mount {
    let spec = MountSpec { backing: Some(dir), args, ..MountSpec::default() };
    Mount::start(&spec, |settings| {
        settings.shared = shared;
        // Names of the last second could be those before another node's rename.
        settings.names_s = 0;
    })
}

pub fn shared(mount: &Mount) -> SharedStats {
    stats(mount).shared
}

/// Has the node read all files into its store.
pub fn warm(mount: &Mount) -> WarmProgress {
    let all = mounts::read().unwrap();
    let shown = mounts::at(&all, mount.place()).unwrap();
    match warm::warm(&SocketDirs::host(), shown, Path::new(""), |_| true).unwrap() {
        WarmEnd::Ended(progress) => progress,
        other => panic!("{other:?}"),
    }
}

/// Waits until the node has offered all blocks of all files.
pub fn wait_offered(mount: &Mount) {
    let passed = |s: &SharedStats| s.offered + s.not_offered >= FILES * 5;
    wait_for("all blocks to be offered", || passed(&shared(mount)));
    let stats = shared(mount);
    assert_eq!(stats.not_offered, 0, "{stats:?}");
}
