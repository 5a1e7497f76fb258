//! The file of the list: in `/var/lib/eke/caches` for root, otherwise in the user's state directory. Nobody else can read it: names of
//! files tell what somebody does.
//!
//! Its directory is opened before the mount, which may cover it: a worker that waited for its own mount could not be replaced.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use eke_cache_mounts::at;
use eke_linux::Root;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;
use twox_hash::XxHash3_64;

use super::choose::MOST_BYTES;
use super::list::{HotList, parse};

/// More than a list of this version has, with its head.
const MOST_READ: u64 = 2 * MOST_BYTES as u64;
/// Lists that are kept, the newest. A directory that was mounted once need not be remembered for ever.
const MOST_LISTS: usize = 64;
const FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// Where the lists of a user are: a directory that exists, and those that are made below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateDir {
    base: PathBuf,
    names: Vec<String>,
}

impl StateDir {
    /// Root's, below `root`.
    pub fn of_root(root: &Root) -> Self {
        Self::new(root.path("var/lib"), &["eke", "caches"])
    }

    /// A user's, by the XDG base directory specification.
    pub fn of_user(state: Option<PathBuf>, home: Option<PathBuf>) -> Option<Self> {
        let absolute = |path: Option<PathBuf>| path.filter(|path| path.is_absolute());
        let by_state = absolute(state).map(|state| Self::new(state, &["eke", "caches"]));
        by_state.or_else(|| absolute(home).map(|home| Self::new(home, &[".local", "state", "eke", "caches"])))
    }

    /// In a directory that exists. For tests, too.
    pub fn new(base: PathBuf, names: &[&str]) -> Self {
        Self { base, names: names.iter().map(|name| (*name).to_owned()).collect() }
    }

    /// This process's. `None`: it is not root's, and the environment names no home.
    pub fn host() -> Option<Self> {
        if rustix::process::geteuid().is_root() {
            return Some(Self::of_root(&Root::host()));
        }
        let of = |name: &str| std::env::var_os(name).map(PathBuf::from);
        Self::of_user(of("XDG_STATE_HOME"), of("HOME"))
    }

    /// Opens it, and makes what is missing. The last directory is the user's alone.
    fn make(&self) -> io::Result<OwnedFd> {
        let mut dir = openat(CWD, &self.base, FLAGS - OFlags::NOFOLLOW, Mode::empty())?;
        for (at, name) in self.names.iter().enumerate() {
            let mode = if at + 1 == self.names.len() { 0o700 } else { 0o755 };
            match mkdirat(&dir, name.as_str(), Mode::from_raw_mode(mode)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(e) => return Err(e.into()),
            }
            dir = openat(&dir, name.as_str(), FLAGS, Mode::empty())?;
        }
        let stat = fstat(&dir)?;
        let is_own = stat.st_uid == rustix::process::geteuid().as_raw() && stat.st_mode & 0o022 == 0;
        if is_own { Ok(dir) } else { Err(Errno::PERM.into()) }
    }

    /// For messages.
    fn path(&self) -> PathBuf {
        self.names.iter().fold(self.base.clone(), |path, name| path.join(name))
    }
}

/// The file of one mount's list.
#[derive(Debug)]
pub struct HotFile {
    dir: OwnedFd,
    name: String,
    /// For messages.
    path: PathBuf,
}

impl HotFile {
    /// The file for the mount of `dir` at `place`. Makes the directory.
    ///
    /// # Errors
    /// A sentence: what was tried, on what, and the kernel's answer.
    pub fn open(state: &StateDir, dir: &Path, place: &Path) -> Result<Self, String> {
        let mut key = dir.as_os_str().as_encoded_bytes().to_vec();
        key.push(0);
        key.extend(place.as_os_str().as_encoded_bytes());
        let name = format!("{:016x}.hot", XxHash3_64::oneshot(&key));
        let path = state.path().join(&name);
        match state.make() {
            Ok(dir) => Ok(Self { dir, name, path }),
            Err(e) => Err(failed("keep the list of what is hot in", &path, &e)),
        }
    }

    /// Reads the list. `None`: there is none of this mount.
    ///
    /// # Errors
    /// As [`HotFile::open`].
    pub fn read(&self, dir: &Path, place: &Path) -> Result<Option<HotList>, String> {
        let bytes = match self.bytes() {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(failed("read", &self.path, &e)),
        };
        let list = parse(&String::from_utf8_lossy(&bytes));
        Ok(list.filter(|list| list.dir == dir && list.place == place))
    }

    fn bytes(&self) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = File::from(openat(&self.dir, self.name.as_str(), flags, Mode::empty())?);
        let mut bytes = Vec::new();
        file.take(MOST_READ).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Replaces the list: after a crash of this program there is the old one or the new one. There is no fsync(2): an unmount would wait
    /// for a busy disk. After a power cut the list may be empty or spoiled; the next mount reads the lines that make sense.
    ///
    /// # Errors
    /// As [`HotFile::open`].
    pub fn write(&self, list: &HotList) -> Result<(), String> {
        self.replace(list.text().as_bytes()).map_err(|e| failed("write", &self.path, &e))
    }

    fn replace(&self, text: &[u8]) -> io::Result<()> {
        let (dir, new) = (&self.dir, format!("{}.new", self.name));
        // Left by a process that was killed.
        let _ = unlinkat(dir, new.as_str(), AtFlags::empty());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(dir, new.as_str(), flags, Mode::RUSR | Mode::WUSR)?);
        let written = file.write_all(text);
        let placed = written.and_then(|()| Ok(renameat(dir, new.as_str(), dir, self.name.as_str())?));
        if placed.is_err() {
            let _ = unlinkat(dir, new.as_str(), AtFlags::empty());
        }
        placed?;
        remove_oldest(dir);
        Ok(())
    }
}

/// Removes the oldest lists beyond [`MOST_LISTS`].
fn remove_oldest(dir: &OwnedFd) {
    let Ok(entries) = std::fs::read_dir(at::link(dir.as_fd())) else { return };
    let dated = entries.flatten().filter(|entry| entry.path().extension().is_some_and(|e| e == "hot"));
    let mut lists: Vec<_> = dated
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.file_name())))
        .collect();
    lists.sort_unstable_by(|one, other| other.cmp(one));
    for (_, name) in lists.into_iter().skip(MOST_LISTS) {
        let _ = unlinkat(dir, &name, AtFlags::empty());
    }
}

fn failed(verb: &str, path: &Path, error: &io::Error) -> String {
    format!("cannot {verb} {}: {error}; --no-remember mounts without it", path.display())
}

#[expect(clippy::single_range_in_vec_init, reason = "a list of ranges with one of them")]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;
    use crate::warm::list::HotPart;

    fn list() -> HotList {
        let part = HotPart { heat: 3, path: "a".into(), blocks: vec![0..2] };
        HotList { dir: "/srv".into(), place: "/fast".into(), block_size: 65_536, parts: vec![part] }
    }

    fn file(base: &Path) -> HotFile {
        open(base).unwrap()
    }

    fn open(base: &Path) -> Result<HotFile, String> {
        let state = StateDir::new(base.into(), &["eke", "caches"]);
        HotFile::open(&state, Path::new("/srv"), Path::new("/fast"))
    }

    #[test]
    fn a_list_is_its_users_alone_and_comes_back() {
        let base = tempfile::tempdir().unwrap();
        let file = file(base.path());
        assert_eq!(file.read(Path::new("/srv"), Path::new("/fast")), Ok(None));
        file.write(&list()).unwrap();
        file.write(&list()).unwrap();
        assert_eq!(file.read(Path::new("/srv"), Path::new("/fast")), Ok(Some(list())));
        assert_eq!(file.read(Path::new("/srv"), Path::new("/srv")), Ok(None), "of another mount");
        let mut damaged = list().text().into_bytes();
        damaged.extend(b"3 0-\xff\x00 b\n");
        file.replace(&damaged).unwrap();
        assert_eq!(file.read(Path::new("/srv"), Path::new("/fast")), Ok(Some(list())));
        let dir = base.path().join("eke/caches");
        let all: Vec<_> = std::fs::read_dir(&dir).unwrap().map(Result::unwrap).collect();
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(dir.metadata().unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn the_oldest_lists_are_removed() {
        let base = tempfile::tempdir().unwrap();
        let state = StateDir::new(base.path().into(), &["caches"]);
        for n in 0..MOST_LISTS + 5 {
            HotFile::open(&state, Path::new("/srv"), Path::new(&format!("/{n}")))
                .unwrap()
                .write(&list())
                .unwrap();
        }
        assert_eq!(std::fs::read_dir(base.path().join("caches")).unwrap().count(), MOST_LISTS);
    }

    #[test]
    fn links_and_directories_of_others_are_not_written_through() {
        let base = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        symlink(elsewhere.path(), base.path().join("eke")).unwrap();
        let error = open(base.path()).unwrap_err();
        assert!(error.contains("cannot keep") && error.contains("--no-remember"), "{error}");
        assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(base.path().join("eke/caches")).unwrap();
        let all = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(base.path().join("eke/caches"), all).unwrap();
        assert!(open(base.path()).is_err());
    }

    #[test]
    fn a_user_has_a_state_directory_if_the_environment_names_one() {
        let home = || Some(PathBuf::from("/home/u"));
        let path = |dir: Option<StateDir>| dir.map(|dir| dir.path());
        assert_eq!(path(StateDir::of_user(None, home())), Some("/home/u/.local/state/eke/caches".into()));
        assert_eq!(path(StateDir::of_user(Some("/s".into()), home())), Some("/s/eke/caches".into()));
        assert_eq!(path(StateDir::of_user(Some("s".into()), home())), path(StateDir::of_user(None, home())));
        assert_eq!(StateDir::of_user(None, None), None);
    }
}
