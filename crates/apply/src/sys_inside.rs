//! The changes of a directory that no symbolic link may leave ([`Inside`]). Each call opens the directory of the last name, and works on that name.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use eke_linux::discard::Discard;
use eke_linux::inside::Inside;
use eke_linux::source::Source;
use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, Uid, chmodat, chownat, fchmod, mkdirat, openat, renameat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::sys::{Sys, not_the_machine, write_once};

/// A link in the place of a file that eke writes is nobody's.
const FILE: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

impl Sys for Inside {
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        write_once(&mut self.open(path, OFlags::WRONLY | FILE, Mode::empty())?.into(), bytes)
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | FILE;
        write_once(&mut self.open(path, flags, PRIVATE)?.into(), bytes)
    }

    fn replace(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        let (dir, name) = self.parent(path)?;
        let beside = [name, ".eke-new".as_ref()].join("".as_ref());
        // An interrupted call has left it, or somebody a link.
        let _ = unlinkat(&dir, &*beside, AtFlags::empty());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | FILE;
        let mut file = File::from(openat(&dir, &*beside, flags, PRIVATE)?);
        let written = fchmod(&file, Mode::from_raw_mode(mode)).map_err(io::Error::from);
        let written = written.and_then(|()| file.write_all(bytes)).and_then(|()| file.sync_all());
        let renamed = written.and_then(|()| Ok(renameat(&dir, &*beside, &dir, name)?));
        if renamed.is_err() {
            let _ = unlinkat(&dir, &*beside, AtFlags::empty());
            return renamed;
        }
        path.parent().map_or(Ok(()), |dir| self.sync(dir))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let (dir, name) = self.parent(path)?;
        match unlinkat(dir, name, AtFlags::empty()) {
            // On a read-only file system unlink(2) says so of a missing file, too.
            Err(e @ Errno::ROFS) => self.link_metadata(path).and(Err(e.into())),
            removed => Ok(removed?),
        }
    }

    fn link(&self, path: &Path, beside: &Path, target: &str) -> io::Result<()> {
        let ((dir, name), (_, beside)) = (self.parent(path)?, self.parent(beside)?);
        symlinkat(target, &dir, beside)?;
        Ok(renameat(&dir, beside, &dir, name)?)
    }

    fn give(&self, path: &Path, (user, group): (u32, u32)) -> io::Result<()> {
        let (dir, name) = self.parent(path)?;
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        Ok(chownat(dir, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    fn lock_file(&self, path: &Path) -> io::Result<File> {
        let file = self.open(path, OFlags::RDWR | OFlags::CREATE | FILE, PRIVATE)?;
        fchmod(&file, PRIVATE)?;
        Ok(file.into())
    }

    fn remove_lock_file(&self, path: &Path) -> io::Result<()> {
        self.remove(path)
    }

    fn sync(&self, path: &Path) -> io::Result<()> {
        File::from(self.open(path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?).sync_all()
    }

    fn create_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        match self.metadata(path) {
            Ok(there) if there.is_dir() => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            other => return other.and(Err(Errno::NOTDIR.into())),
        }
        path.parent().map_or(Ok(()), |above| self.create_dir(above, mode))?;
        let (dir, name) = self.parent(path)?;
        let bits = Mode::from_raw_mode(mode);
        mkdirat(&dir, name, bits)?;
        // Independent of the caller's umask.
        Ok(chmodat(dir, name, bits, AtFlags::empty())?)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let (dir, name) = self.parent(path)?;
        Ok(unlinkat(dir, name, AtFlags::REMOVEDIR)?)
    }

    fn swapon(&self, _: &Path, _: Option<i16>, _: Option<Discard>) -> io::Result<()> {
        Err(not_the_machine())
    }

    fn swapoff(&self, _: &Path) -> io::Result<()> {
        Err(not_the_machine())
    }

    fn may_write(&self, path: &Path) -> io::Result<()> {
        let (dir, name) = self.parent(path)?;
        Ok(rustix::fs::accessat(dir, name, rustix::fs::Access::WRITE_OK, AtFlags::empty())?)
    }
}
