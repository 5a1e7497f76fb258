//! Describes a directory tree as text that can be compared.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, lgetxattr, llistxattr, open, readlinkat, statat,
};
use rustix::io::Errno;

/// The most bytes of a file that are read.
const MOST: u64 = 1 << 20;

/// The attributes that are the same in two trees with the same history: all but the numbers and times of inodes and the size of a
/// directory.
pub fn stat(stat: &Stat) -> String {
    let kind = FileType::from_raw_mode(stat.st_mode);
    let size = if kind == FileType::Directory { 0 } else { stat.st_size };
    format!(
        "{kind:?} {:o} {size} bytes {} links {}:{} device {}",
        stat.st_mode, stat.st_nlink, stat.st_uid, stat.st_gid, stat.st_rdev
    )
}

/// Sorts names that end with zero bytes, as listxattr(2) returns them.
pub fn names(bytes: &[u8]) -> String {
    let mut names: Vec<_> = bytes.split(|b| *b == 0).map(String::from_utf8_lossy).collect();
    names.sort();
    names.join(" ")
}

/// Length, hash and first bytes.
pub fn summary(bytes: &[u8]) -> String {
    let mut hash = DefaultHasher::new();
    bytes.hash(&mut hash);
    let first = &bytes[..bytes.len().min(4)];
    format!("{} bytes {:016x} {first:02x?}", bytes.len(), hash.finish())
}

/// A file or directory of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Equal in two trees with the same history.
    pub text: String,
    /// Equal only in two views of one tree: inode and times.
    pub exact: String,
}

/// Describes all of a tree, by path.
pub fn walk(root: &Path) -> BTreeMap<PathBuf, Entry> {
    let mut all = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(path) = waiting.pop() {
        let failed = |e| (Entry { text: format!("{e:?}"), exact: String::new() }, false);
        let (mut entry, is_directory) = entry(&path).unwrap_or_else(failed);
        match if is_directory { list(&path) } else { Ok(Vec::new()) } {
            Ok(names) => waiting.extend(names.iter().map(|name| path.join(name))),
            Err(e) => entry.text += &format!(" list: {e:?}"),
        }
        let known = all.insert(path.strip_prefix(root).unwrap().to_owned(), entry);
        assert!(known.is_none(), "{} is listed twice", path.display());
    }
    all
}

fn list(path: &Path) -> Result<Vec<PathBuf>, Errno> {
    let dir = Dir::new(open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)?;
    let mut names = Vec::new();
    for entry in dir {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(PathBuf::from(name));
        }
    }
    Ok(names)
}

fn entry(path: &Path) -> Result<(Entry, bool), Errno> {
    let found = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
    let kind = FileType::from_raw_mode(found.st_mode);
    let text = format!("{} {}", stat(&found), inside(path, kind, found.st_size as u64)?);
    let Stat { st_ino, st_mtime, st_mtime_nsec, st_ctime, st_ctime_nsec, .. } = found;
    let exact = format!("inode {st_ino}, {st_mtime}.{st_mtime_nsec}, {st_ctime}.{st_ctime_nsec}");
    Ok((Entry { text, exact }, kind == FileType::Directory))
}

fn inside(path: &Path, kind: FileType, size: u64) -> Result<String, Errno> {
    let content = match kind {
        FileType::RegularFile => content(path, size)?,
        FileType::Symlink => format!("{:?}", readlinkat(CWD, path, Vec::new())?),
        _ => String::new(),
    };
    Ok(content + &attributes(path)?)
}

fn content(path: &Path, size: u64) -> Result<String, Errno> {
    let file =
        std::fs::File::from(open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOATIME, Mode::empty())?);
    let mut bytes = Vec::with_capacity(size.min(MOST) as usize + 1);
    file.take(MOST).read_to_end(&mut bytes).map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
    Ok(summary(&bytes))
}

fn attributes(path: &Path) -> Result<String, Errno> {
    let mut list = vec![0; 4096];
    let len = llistxattr(path, &mut list[..])?;
    let mut all: Vec<_> = list[..len]
        .split(|b| *b == 0)
        .filter(|name| !name.is_empty())
        .map(|name| {
            let mut value = vec![0; 8192];
            let got = lgetxattr(path, OsStr::from_bytes(name), &mut value[..]);
            let value = got.map(|len| summary(&value[..len]));
            format!(" {}={value:?}", String::from_utf8_lossy(name))
        })
        .collect();
    all.sort();
    Ok(all.concat())
}
