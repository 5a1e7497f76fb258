//! What a tree looks like, in words that can be compared.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, listxattr, open, readlinkat, statat};
use rustix::io::Errno;

use super::apply::read_all;

/// What is the same in two trees with the same history: not numbers and times of inodes, nor a directory's size.
pub fn stat(stat: &Stat) -> String {
    let kind = FileType::from_raw_mode(stat.st_mode);
    let size = if kind == FileType::Directory { 0 } else { stat.st_size };
    format!(
        "{kind:?} {:o} {size} bytes {} links {}:{}",
        stat.st_mode, stat.st_nlink, stat.st_uid, stat.st_gid
    )
}

/// A directory's names in order, with what readdir(3) says of their types.
pub fn list(path: &Path) -> Result<String, Errno> {
    let dir = Dir::new(open(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?)?;
    let mut names = dir
        .map(|entry| {
            entry.map(|e| format!("{:?} {:?}", OsStr::from_bytes(e.file_name().to_bytes()), e.file_type()))
        })
        .collect::<Result<Vec<_>, _>>()?;
    names.sort();
    Ok(names.join("\n"))
}

/// Names that end with zero bytes, in order.
pub fn names(bytes: &[u8]) -> String {
    let mut names: Vec<_> = bytes.split(|b| *b == 0).map(String::from_utf8_lossy).collect();
    names.sort();
    names.join(" ")
}

/// Bytes in few words.
pub fn summary(bytes: &[u8]) -> String {
    let mut hash = DefaultHasher::new();
    bytes.hash(&mut hash);
    let first = &bytes[..bytes.len().min(4)];
    format!("{} bytes {:016x} {first:02x?}", bytes.len(), hash.finish())
}

/// All of it: path to what is there. `exact`: with what only two views of one tree have in common.
pub fn walk(root: &Path, exact: bool) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let here = statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW).unwrap();
            let kind = FileType::from_raw_mode(here.st_mode);
            let mut words = format!("{} {}", stat(&here), inside(&path, kind));
            if exact {
                let Stat { st_ino, st_mtime, st_mtime_nsec, st_ctime, st_ctime_nsec, .. } = here;
                words += &format!(" inode {st_ino}, {st_mtime}.{st_mtime_nsec}, {st_ctime}.{st_ctime_nsec}");
            }
            assert!(all.insert(path.strip_prefix(root).unwrap().to_owned(), words).is_none());
            if kind == FileType::Directory {
                waiting.push(path);
            }
        }
    }
    all
}

fn inside(path: &Path, kind: FileType) -> String {
    let mut attributes = vec![0; 4096];
    match kind {
        FileType::RegularFile => {
            let len = listxattr(path, &mut attributes[..]).unwrap();
            format!("{:?} {}", read_all(path), names(&attributes[..len]))
        }
        FileType::Symlink => format!("{:?}", readlinkat(CWD, path, Vec::new())),
        _ => String::new(),
    }
}
