//! The directory with a user's sockets. Nobody else can write to it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use eke_linux::parse::mountinfo;
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::fs::{flock, fstat, mkdirat, openat, openat2, statx};
use rustix::io::Errno;

use crate::at;

/// Where the directories with sockets are.
#[derive(Debug, Clone)]
pub struct SocketDirs {
    root: PathBuf,
    runtime: Option<PathBuf>,
    own: u32,
}

/// An existing directory, and the directories that are made in it, each inside the one before.
struct Chain {
    base: PathBuf,
    /// Must the base belong to the user?
    is_users: bool,
    names: Vec<String>,
}

impl SocketDirs {
    /// Below `root` (normally `/`), for a process of the user `own` whose `XDG_RUNTIME_DIR` is `runtime`.
    pub fn new(root: impl Into<PathBuf>, runtime: Option<PathBuf>, own: u32) -> Self {
        Self { root: root.into(), runtime, own }
    }

    /// On this machine, for this process.
    pub fn host() -> Self {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|p| p.is_absolute());
        Self::new("/", runtime, rustix::process::geteuid().as_raw())
    }

    /// The user of this process.
    pub fn own(&self) -> u32 {
        self.own
    }

    /// Opens this user's directory; makes it if it is missing (mode 0700). Root's is `/run/eke/caches`; other users' are below
    /// `XDG_RUNTIME_DIR`, `/run/user/UID` or `/tmp/eke-UID`, whichever exists first.
    ///
    /// # Errors
    /// Those of the last candidate: `EPERM` if others can write to it.
    pub fn make(&self) -> io::Result<OwnedFd> {
        let mut last = io::Error::from(Errno::NOENT);
        for chain in self.chains(self.own) {
            match chain.open(self.own, true) {
                Ok(dir) => return Ok(dir),
                Err(e) => last = e.into(),
            }
        }
        Err(last)
    }

    /// Opens each directory of a user that exists and that only this user can write to. Another user's directory may be on a file
    /// system that this user serves and that never answers: such ones are left out, without a request to that file system.
    pub fn of(&self, uid: u32) -> Vec<OwnedFd> {
        let open = |chain: &Chain| match uid == self.own {
            true => chain.open(uid, false).ok(),
            false => chain.open_of_another(uid).ok(),
        };
        self.chains(uid).iter().filter_map(open).collect()
    }

    /// A file for a supervisor's standard error, in the directory that [`SocketDirs::make`] opens.
    ///
    /// # Errors
    /// The directory's, or what openat(2) answers.
    pub fn log(&self) -> io::Result<(std::fs::File, PathBuf)> {
        let dir = self.make()?;
        let flags = OFlags::CREATE | OFlags::APPEND | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = std::fs::File::from(openat(&dir, LOG, flags, Mode::RUSR | Mode::WUSR)?);
        if file.metadata()?.len() > LOG_MOST {
            file.set_len(0)?;
        }
        let path = std::fs::read_link(at::link(dir.as_fd()))?;
        Ok((file, path.join(LOG)))
    }

    /// Waits until no other process of this user mounts a cache or removes a failed one: of two for one place, the second must see the
    /// first. The turn ends when the file is closed.
    ///
    /// # Errors
    /// The directory's, or what openat(2) or flock(2) answers: `EWOULDBLOCK` if the other needs longer than `longest`.
    pub fn turn(&self, longest: Duration) -> io::Result<OwnedFd> {
        let dir = self.make()?;
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&dir, TURN, flags, Mode::RUSR | Mode::WUSR)?;
        let until = Instant::now() + longest;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) if Instant::now() < until => std::thread::sleep(PAUSE),
                locked => return Ok(locked.map(|()| file)?),
            }
        }
    }

    fn chains(&self, uid: u32) -> Vec<Chain> {
        let names = |first: &str| vec![first.to_owned(), "caches".to_owned()];
        if uid == 0 {
            return vec![Chain { base: self.root.join("run"), is_users: true, names: names("eke") }];
        }
        let usual = self.root.join(format!("run/user/{uid}"));
        let runtime = self.runtime.clone().filter(|r| uid == self.own && *r != usual);
        let backing = runtime.into_iter().chain([usual]);
        let backing = backing.map(|base| Chain { base, is_users: true, names: names("eke") });
        let shared =
            Chain { base: self.root.join("tmp"), is_users: false, names: names(&format!("eke-{uid}")) };
        backing.chain([shared]).collect()
    }
}

const LOG: &str = "log";
const TURN: &str = "turn";
/// Between two looks for the turn.
const PAUSE: Duration = Duration::from_millis(20);
/// In bytes. A longer one is emptied at the next start: /run is memory.
const LOG_MOST: u64 = 1 << 20;
const FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::PATH).union(OFlags::CLOEXEC);

impl Chain {
    fn open(&self, uid: u32, make: bool) -> Result<OwnedFd, Errno> {
        let mut dir = openat(CWD, &self.base, FLAGS, Mode::empty())?;
        if self.is_users {
            check(dir.as_fd(), uid)?;
        }
        for name in &self.names {
            if make {
                make_dir(dir.as_fd(), name)?;
            }
            dir = openat(&dir, name.as_str(), FLAGS | OFlags::NOFOLLOW, Mode::empty())?;
            check(dir.as_fd(), uid)?;
        }
        Ok(dir)
    }
}

impl Chain {
    /// The same without a step onto another mount: its server could keep this process waiting for ever.
    fn open_of_another(&self, uid: u32) -> Result<OwnedFd, Errno> {
        let mut dir = openat(CWD, &self.base, FLAGS, Mode::empty())?;
        if is_served_by_a_process(dir.as_fd())? {
            return Err(Errno::XDEV);
        }
        if self.is_users {
            check(dir.as_fd(), uid)?;
        }
        for name in &self.names {
            dir = open_on_same_mount(dir.as_fd(), name, FLAGS)?;
            check(dir.as_fd(), uid)?;
        }
        Ok(dir)
    }
}

/// Opens a name on the same mount; follows no link.
pub(super) fn open_on_same_mount(dir: BorrowedFd<'_>, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    openat2(dir, name, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
}

/// Is it on a FUSE mount? By the kernel's list of mounts (`STATX_MNT_ID`, Linux 5.8), without a request to the file system.
fn is_served_by_a_process(dir: BorrowedFd<'_>) -> Result<bool, Errno> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let id = statx(dir, "", flags, StatxFlags::MNT_ID)?.stx_mnt_id;
    let list = std::fs::read("/proc/self/mountinfo").map_err(|_| Errno::IO)?;
    Ok(mountinfo::parse(&list).iter().any(|mount| mount.id == id && mount.kind.starts_with("fuse")))
}

fn make_dir(dir: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
    // Everybody may enter /run/eke, since the agent's socket is there.
    let mode = if name == "eke" { 0o755 } else { 0o700 };
    match mkdirat(dir, name, Mode::from_raw_mode(mode)) {
        Err(Errno::EXIST) | Ok(()) => Ok(()),
        Err(e) => Err(e),
    }
}

/// Checks that it belongs to this user and that nobody else can write to it.
fn check(dir: BorrowedFd<'_>, uid: u32) -> Result<(), Errno> {
    let stat = fstat(dir)?;
    let writable_by_others = stat.st_mode & 0o022 != 0;
    if stat.st_uid == uid && !writable_by_others { Ok(()) } else { Err(Errno::PERM) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    /// A root with /run and /tmp, and the user who runs the test in the role of an ordinary one.
    fn root() -> (tempfile::TempDir, u32) {
        let root = tempfile::tempdir().unwrap();
        for dir in ["run", "tmp"] {
            std::fs::create_dir(root.path().join(dir)).unwrap();
        }
        (root, rustix::process::geteuid().as_raw())
    }

    fn shared(root: &Path, uid: u32) -> Chain {
        Chain { base: root.join("tmp"), is_users: false, names: vec![format!("eke-{uid}"), "caches".into()] }
    }

    #[test]
    fn a_user_without_a_runtime_directory_gets_one_in_tmp() {
        let (root, uid) = root();
        let dir = shared(root.path(), uid).open(uid, true).unwrap();
        assert_eq!(fstat(&dir).unwrap().st_mode & 0o777, 0o700);
        assert!(root.path().join(format!("tmp/eke-{uid}/caches")).is_dir());
        assert!(shared(root.path(), uid).open(uid, false).is_ok());
    }

    #[test]
    fn a_turn_waits_for_the_one_before() {
        let (root, uid) = root();
        let dirs = SocketDirs::new(root.path(), Some(root.path().to_owned()), uid);
        let first = dirs.turn(Duration::ZERO).unwrap();
        assert_eq!(dirs.turn(Duration::ZERO).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| dirs.turn(Duration::from_secs(60)));
            drop(first);
            second.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_link_in_the_way_is_refused() {
        let (root, uid) = root();
        let bait = root.path().join("bait");
        std::fs::create_dir(&bait).unwrap();
        symlink(&bait, root.path().join(format!("tmp/eke-{uid}"))).unwrap();
        assert!(shared(root.path(), uid).open(uid, true).is_err());
        assert_eq!(std::fs::read_dir(&bait).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_that_others_can_write_to_or_own_is_refused() {
        let (root, uid) = root();
        let open = root.path().join(format!("tmp/eke-{uid}"));
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
        assert_eq!(shared(root.path(), uid).open(uid, true).unwrap_err(), Errno::PERM);
        std::fs::set_permissions(&open, Permissions::from_mode(0o700)).unwrap();
        assert!(shared(root.path(), uid).open(uid, true).is_ok());
        assert_eq!(shared(root.path(), uid).open(uid + 1, false).unwrap_err(), Errno::PERM);
    }

    #[test]
    fn each_user_has_directories_in_order() {
        let bases = |dirs: SocketDirs, uid| -> Vec<PathBuf> {
            dirs.chains(uid).into_iter().map(|c| c.base.join(&c.names[0])).collect()
        };
        let dirs = |own| SocketDirs::new("/", Some("/x/run".into()), own);
        assert_eq!(bases(dirs(0), 0), [Path::new("/run/eke")]);
        let own = ["/x/run/eke", "/run/user/1000/eke", "/tmp/eke-1000"].map(PathBuf::from);
        assert_eq!(bases(dirs(1000), 1000), own);
        // XDG_RUNTIME_DIR of this process belongs to its own user.
        assert_eq!(bases(dirs(0), 1000), own[1..]);
    }
}
