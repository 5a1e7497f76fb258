//! A directory, and a mount that serves it at another one.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use eke_cache_mounts::settings::{Compress, PassthroughMode};
use eke_cache_policy::admission::Admission;
use eke_cache_store::{Store, StoreSpec};
use eke_cachefs::fs::{Fs, Options, Serve};
use eke_cachefs::node::NoLedger;
use eke_cachefs::passthrough::Passthrough;
use eke_cachefs::tier::{self, Tier};
use eke_model::units::Bytes;
use eke_testkit::real::skip;
use fuser::{BackgroundSession, Config, MountOption, Session, SessionACL};
use rustix::fs::{Mode, OFlags, open};
use tempfile::TempDir;

pub struct Mounted {
    session: Option<BackgroundSession>,
    place: TempDir,
    backing: TempDir,
    admission: Arc<Admission>,
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl Mounted {
    /// Serves a new directory on the file system of `on`.
    pub fn new(on: &Path, ttl: Duration, passthrough: PassthroughMode) -> Self {
        let (backing, place) = (TempDir::new_in(on).unwrap(), TempDir::new().unwrap());
        for dir in [&backing, &place] {
            std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        }
        let root =
            open(backing.path(), OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        let store = Arc::new(Store::new(StoreSpec::for_cpus(Bytes::mib(32), 2)).unwrap());
        let admission = Arc::new(Admission::new(passthrough));
        let options = tier::Options { policy: admission.clone(), ..tier::Options::default() };
        let tier = Arc::new(Tier::new(store, Compress::Sync, options));
        let options = Options { ttl, forgotten: 64, ..Options::default() };
        let fs = Fs::new(root, tier, Arc::new(NoLedger), options)
            .unwrap()
            .with_passthrough(Passthrough::new(Arc::clone(&admission), None));
        let mut config = Config::default();
        let name = MountOption::FSName("eke-test".to_owned());
        config.mount_options = vec![name, MountOption::DefaultPermissions];
        if is_root() {
            config.mount_options.extend([MountOption::Suid, MountOption::Dev]);
            config.acl = SessionACL::All;
        }
        config.n_threads = Some(2);
        let session =
            Session::new(Serve::new(Arc::new(fs)), place.path(), &config).and_then(Session::spawn).unwrap();
        Self { session: Some(session), place, backing, admission }
    }

    /// A path in the mount.
    pub fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// The decisions about files.
    pub fn admission(&self) -> &Admission {
        &self.admission
    }

    /// Why files do not use passthrough here, if they should.
    pub fn no_passthrough(&self) -> Option<String> {
        self.admission.report().no_passthrough
    }

    /// The same path in the backing directory.
    pub fn backing(&self, name: &str) -> PathBuf {
        self.backing.path().join(name)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        detach(self.place.path());
        drop(self.session.take());
    }
}

/// Unmounts, also while it is in use: a process that another test starts has a copy of each descriptor until it executes its program.
pub fn detach(place: &Path) {
    let umount = if is_root() { ("umount", "-l") } else { ("fusermount3", "-uz") };
    let _ = std::process::Command::new(umount.0).arg(umount.1).arg(place).status();
}

/// Runs `test` on a disk and on a tmpfs. The kernel may use names and attributes for `ttl`.
pub fn each_for(name: &str, ttl: Duration, test: impl Fn(&Mounted)) {
    if !Path::new("/dev/fuse").exists() {
        assert_ne!(std::env::var("EKE_TESTS").as_deref(), Ok("require"), "{name} needs /dev/fuse");
        return skip(name, "no /dev/fuse on this machine");
    }
    let tmpfs = Path::new("/dev/shm");
    let disk = std::env::temp_dir();
    for on in [disk.as_path(), tmpfs].into_iter().filter(|d| d.exists()) {
        test(&Mounted::new(on, ttl, PassthroughMode::Never));
    }
}

/// The same with one second, as in a mount.
pub fn each(name: &str, test: impl Fn(&Mounted)) {
    each_for(name, Duration::from_secs(1), test);
}
