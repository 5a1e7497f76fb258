//! A directory that stands for `/`: symbolic links in it lead as after chroot(2), never out of it, whoever changes them meanwhile.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, Mode, OFlags, ResolveFlags, openat, openat2, readlinkat};
use rustix::io::Errno;

use crate::source::Source;

const PATH: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
/// openat2(2) gives up if somebody renames a directory on the way.
const TRIES: usize = 64;

/// The directory.
#[derive(Debug)]
pub struct Inside {
    dir: PathBuf,
    top: OwnedFd,
}

impl Inside {
    /// Opens the directory.
    ///
    /// # Errors
    /// The kernel's answer. openat2(2) is missing (before Linux 5.6) or refused: a sentence.
    pub fn new(dir: &Path) -> io::Result<Self> {
        let top = openat(CWD, dir, PATH | OFlags::DIRECTORY, Mode::empty())?;
        let inside = Self { dir: dir.to_owned(), top };
        inside.open(dir, PATH, Mode::empty()).map_err(explained)?;
        Ok(inside)
    }

    /// Opens an absolute path that begins with the directory.
    ///
    /// # Errors
    /// Those of openat2(2).
    pub fn open(&self, path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let below = path.strip_prefix(&self.dir).map_err(|_| Errno::XDEV)?;
        let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        let how = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let mut tries = (0..TRIES).map(|_| openat2(&self.top, below, flags | OFlags::CLOEXEC, mode, how));
        let opened = tries.find(|opened| !matches!(opened, Err(Errno::AGAIN)));
        Ok(opened.unwrap_or(Err(Errno::AGAIN))?)
    }

    /// The directory that has a path's last name, and that name: for a call that does not follow a link there.
    ///
    /// # Errors
    /// Those of openat2(2); EINVAL without a name.
    pub fn parent<'p>(&self, path: &'p Path) -> io::Result<(OwnedFd, &'p OsStr)> {
        let (dir, name) = path.parent().zip(path.file_name()).ok_or(Errno::INVAL)?;
        Ok((self.open(dir, PATH | OFlags::DIRECTORY, Mode::empty())?, name))
    }
}

/// The answer to the first openat2(2).
fn explained(e: io::Error) -> io::Error {
    match Errno::from_io_error(&e) {
        Some(Errno::NOSYS | Errno::PERM) => io::Error::new(io::ErrorKind::Unsupported, NO_OPENAT2),
        _ => e,
    }
}

const NO_OPENAT2: &str = "a directory that stands for / needs openat2(2), so that no symbolic link in it leads out of it; this kernel lacks it (Linux has it since 5.6), or forbids it here (an old container engine)";

impl Source for Inside {
    /// Only of a regular file: a pipe would not end, nor may a device.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let mut file = File::from(self.open(path, flags, Mode::empty())?);
        let kind = file.metadata()?.file_type();
        if !kind.is_file() && !kind.is_dir() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map(|_| bytes)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let dir = self.open(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        let mut names = Vec::new();
        for entry in Dir::read_from(dir)? {
            let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_string_lossy().into_owned();
            names.extend((name != "." && name != "..").then_some(name));
        }
        names.sort();
        Ok(names)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        File::from(self.open(path, PATH, Mode::empty())?).metadata()
    }

    fn link_metadata(&self, path: &Path) -> io::Result<Metadata> {
        File::from(self.open(path, PATH | OFlags::NOFOLLOW, Mode::empty())?).metadata()
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        let (dir, name) = self.parent(path)?;
        let target = readlinkat(dir.as_fd(), name, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use eke_testkit::tree::put;

    use super::*;

    /// A root with links out of it, beside a file that nobody may reach.
    fn tree() -> (tempfile::TempDir, Inside) {
        let all = tempfile::tempdir().unwrap();
        let root = all.path().join("root");
        put(all.path(), "secret", "outside");
        put(&root, "etc/file", "inside");
        put(&root, "etc/dir/file", "deep");
        let secret = all.path().join("secret");
        symlink(&secret, root.join("absolute")).unwrap();
        symlink("../../../secret", root.join("etc/relative")).unwrap();
        symlink(all.path(), root.join("parent")).unwrap();
        symlink("/etc/dir", root.join("within")).unwrap();
        let inside = Inside::new(&root).unwrap();
        (all, inside)
    }

    #[test]
    fn no_link_leads_out() {
        let (all, inside) = tree();
        let at = |path: &str| all.path().join("root").join(path);
        for path in ["absolute", "etc/relative", "parent/secret", "../secret", "etc/../../secret"] {
            let e = inside.read(&at(path)).unwrap_err();
            assert_eq!(e.kind(), io::ErrorKind::NotFound, "{path}");
            assert!(inside.metadata(&at(path)).is_err(), "{path}");
        }
        assert!(inside.list(&at("parent")).is_err());
        assert!(inside.read(&all.path().join("secret")).is_err());
        assert_eq!(inside.read(&at("within/file")).unwrap(), b"deep");
        assert_eq!(inside.read(&at("../etc/file")).unwrap(), b"inside");
        assert_eq!(inside.list(&at("within")).unwrap(), ["file"]);
        assert!(inside.link_metadata(&at("absolute")).unwrap().is_symlink());
        assert_eq!(inside.read_link(&at("absolute")).unwrap(), all.path().join("secret"));
    }

    #[test]
    fn a_kernel_without_the_call_is_named() {
        let said = |errno: Errno| explained(errno.into()).to_string();
        assert!(said(Errno::NOSYS).contains("since 5.6") && said(Errno::PERM).contains("since 5.6"));
        assert!(!said(Errno::NOENT).contains("since 5.6"));
        assert!(Inside::new(Path::new("/nonexistent")).is_err());
    }

    #[test]
    fn what_is_no_file_is_not_read() {
        let (all, inside) = tree();
        let pipe = all.path().join("root/pipe");
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(inside.read(&pipe).unwrap_err().to_string().contains("not a regular file"));
    }
}
