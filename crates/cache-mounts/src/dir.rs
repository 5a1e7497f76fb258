//! The directory with a user's sockets: one that nobody else can write to, whatever lies beside it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use eke_linux::parse::mountinfo;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::fs::{fstat, mkdirat, openat, openat2, statx};
use rustix::io::Errno;

use crate::at;

/// Where such directories may lie.
#[derive(Debug, Clone)]
pub struct Dirs {
    root: PathBuf,
    runtime: Option<PathBuf>,
    own: u32,
}

/// A directory that is there already, and what is made below it.
struct Chain {
    base: PathBuf,
    /// Must the base be the user's?
    theirs: bool,
    names: Vec<String>,
}

impl Dirs {
    /// Below `root` (`/`), for a process of the user `own` with this `XDG_RUNTIME_DIR`.
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

    /// Opens this user's directory and makes it where it is missing (0700): root's is `/run/eke/caches`, a user's lies in
    /// `XDG_RUNTIME_DIR`, in `/run/user/UID` or in `/tmp/eke-UID`, whichever there is first.
    ///
    /// # Errors
    /// The last place's: `EPERM` if it is not only this user's.
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

    /// Opens each of a user's directories that is there and only that user's. Another user's may lie on a file system that the
    /// user serves, and that never answers: those are left out without a question to it.
    pub fn of(&self, uid: u32) -> Vec<OwnedFd> {
        let open = |chain: &Chain| match uid == self.own {
            true => chain.open(uid, false).ok(),
            false => chain.open_of_another(uid).ok(),
        };
        self.chains(uid).iter().filter_map(open).collect()
    }

    /// A file for what a supervisor says beside its messages, in the directory that [`Dirs::make`] opens.
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

    fn chains(&self, uid: u32) -> Vec<Chain> {
        let names = |first: &str| vec![first.to_owned(), "caches".to_owned()];
        if uid == 0 {
            return vec![Chain { base: self.root.join("run"), theirs: true, names: names("eke") }];
        }
        let usual = self.root.join(format!("run/user/{uid}"));
        let runtime = self.runtime.clone().filter(|r| uid == self.own && *r != usual);
        let backing = runtime.into_iter().chain([usual]);
        let backing = backing.map(|base| Chain { base, theirs: true, names: names("eke") });
        let shared =
            Chain { base: self.root.join("tmp"), theirs: false, names: names(&format!("eke-{uid}")) };
        backing.chain([shared]).collect()
    }
}

const LOG: &str = "log";
/// In bytes. A longer one is emptied at the next start: /run is memory.
const LOG_MOST: u64 = 1 << 20;
const FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::PATH).union(OFlags::CLOEXEC);

impl Chain {
    fn open(&self, uid: u32, make: bool) -> Result<OwnedFd, Errno> {
        let mut dir = openat(CWD, &self.base, FLAGS, Mode::empty())?;
        if self.theirs {
            check(dir.as_fd(), uid)?;
        }
        for name in &self.names {
            if make {
                made(dir.as_fd(), name)?;
            }
            dir = openat(&dir, name.as_str(), FLAGS | OFlags::NOFOLLOW, Mode::empty())?;
            check(dir.as_fd(), uid)?;
        }
        Ok(dir)
    }
}

impl Chain {
    /// Without a step onto another mount: its server could keep this process waiting for ever.
    fn open_of_another(&self, uid: u32) -> Result<OwnedFd, Errno> {
        let mut dir = openat(CWD, &self.base, FLAGS, Mode::empty())?;
        if is_served_by_a_process(dir.as_fd())? {
            return Err(Errno::XDEV);
        }
        if self.theirs {
            check(dir.as_fd(), uid)?;
        }
        for name in &self.names {
            dir = without_a_step_elsewhere(dir.as_fd(), name, FLAGS)?;
            check(dir.as_fd(), uid)?;
        }
        Ok(dir)
    }
}

/// Opens a name on the same mount, following no link.
pub(super) fn without_a_step_elsewhere(
    dir: BorrowedFd<'_>,
    name: &str,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    openat2(dir, name, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
}

/// By the kernel's list of mounts (`STATX_MNT_ID`, Linux 5.8): the file system itself is asked nothing.
fn is_served_by_a_process(dir: BorrowedFd<'_>) -> Result<bool, Errno> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let id = statx(dir, "", flags, StatxFlags::MNT_ID)?.stx_mnt_id;
    let list = std::fs::read("/proc/self/mountinfo").map_err(|_| Errno::IO)?;
    Ok(mountinfo::parse(&list).iter().any(|mount| mount.id == id && mount.kind.starts_with("fuse")))
}

fn made(dir: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
    // /run/eke is open to everybody, since the agent's socket lies there.
    let mode = if name == "eke" { 0o755 } else { 0o700 };
    match mkdirat(dir, name, Mode::from_raw_mode(mode)) {
        Err(Errno::EXIST) | Ok(()) => Ok(()),
        Err(e) => Err(e),
    }
}

/// Is it this user's, and can nobody else change it?
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

    /// A root with /run and /tmp, as the user who runs the test, who plays an ordinary one.
    fn root() -> (tempfile::TempDir, u32) {
        let root = tempfile::tempdir().unwrap();
        for dir in ["run", "tmp"] {
            std::fs::create_dir(root.path().join(dir)).unwrap();
        }
        (root, rustix::process::geteuid().as_raw())
    }

    fn shared(root: &Path, uid: u32) -> Chain {
        Chain { base: root.join("tmp"), theirs: false, names: vec![format!("eke-{uid}"), "caches".into()] }
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
    fn each_user_has_places_in_order() {
        let bases = |dirs: Dirs, uid| -> Vec<PathBuf> {
            dirs.chains(uid).into_iter().map(|c| c.base.join(&c.names[0])).collect()
        };
        let dirs = |own| Dirs::new("/", Some("/x/run".into()), own);
        assert_eq!(bases(dirs(0), 0), [Path::new("/run/eke")]);
        let own = ["/x/run/eke", "/run/user/1000/eke", "/tmp/eke-1000"].map(PathBuf::from);
        assert_eq!(bases(dirs(1000), 1000), own);
        // The runtime directory of who asks is not that of the one asked for.
        assert_eq!(bases(dirs(0), 1000), own[1..]);
    }
}
