//! Copies a tree to a directory.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::error::Result;
use super::tree::{Entry, Tree};
use crate::fault::on;

/// Where something is mounted, and what programs expect to be there.
const DIRECTORIES: [(&str, u32); 8] = [
    ("dev", 0o755),
    ("proc", 0o755),
    ("sys", 0o755),
    ("run", 0o755),
    ("root", 0o700),
    ("tmp", 0o1777),
    ("var/tmp", 0o1777),
    ("etc", 0o755),
];
/// Who there is; nobody asks a directory service.
const FILES: [(&str, &str); 3] = [
    (
        "etc/passwd",
        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    ),
    ("etc/group", "root:x:0:\nnogroup:x:65534:\n"),
    ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"),
];

/// Copies the files with their contents, modes and times of change to `to`, an empty directory, and adds what every root
/// has.
///
/// # Errors
/// A file that cannot be read or made.
pub fn to(tree: &Tree, to: &Path) -> Result<()> {
    for (path, entry) in &tree.entries {
        one(entry, &below(to, path))?;
    }
    add_basics(to)?;
    // Last, since making what is in them changes directories.
    for (path, entry) in tree.entries.iter().rev() {
        if let Entry::Directory { modified_s, .. } | Entry::File { modified_s, .. } = entry {
            set_modified(&below(to, path), *modified_s)?;
        }
    }
    cache_fonts(to);
    Ok(())
}

fn below(to: &Path, path: &Path) -> PathBuf {
    to.join(path.strip_prefix("/").unwrap_or(path))
}

fn one(entry: &Entry, to: &Path) -> Result<()> {
    match entry {
        Entry::Directory { mode, .. } => make_directory(to, mode | 0o700),
        Entry::Link { target } => Ok(symlink(target, to).map_err(on("make the link", to))?),
        Entry::File { from, mode, .. } => {
            std::fs::copy(from, to).map_err(on("copy", from))?;
            set_mode(to, *mode)
        }
    }
}

fn make_directory(path: &Path, mode: u32) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(path).map_err(on("make", path))?;
    set_mode(path, mode)
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    Ok(std::fs::set_permissions(path, Permissions::from_mode(mode)).map_err(on("set the mode of", path))?)
}

fn add_basics(to: &Path) -> Result<()> {
    for (name, mode) in DIRECTORIES {
        let path = to.join(name);
        // `/var/tmp` may be a link, whatever it leads to outside.
        if !path.is_symlink() {
            make_directory(&path, mode)?;
        }
    }
    for (name, text) in FILES {
        let path = to.join(name);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => file.write_all(text.as_bytes()).map_err(on("write", &path))?,
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(on("make", &path)(e).into()),
        }
    }
    Ok(())
}

fn set_modified(path: &Path, seconds: i64) -> Result<()> {
    let since = Duration::from_secs(seconds.unsigned_abs());
    let time: Option<SystemTime> =
        if seconds < 0 { UNIX_EPOCH.checked_sub(since) } else { UNIX_EPOCH.checked_add(since) };
    let set = |time| File::open(path).and_then(|file| file.set_modified(time));
    Ok(time.map_or(Ok(()), set).map_err(on("set the time of", path))?)
}

/// fontconfig's cache is good for directories with the same time of change to the nanosecond, and file systems are made
/// with whole seconds: without a new one every program would read every font when it starts. Where that fails, they do.
fn cache_fonts(to: &Path) {
    if to.join("etc/fonts").is_dir() {
        let mut command = Command::new("fc-cache");
        let _ = command.arg("--system-only").arg("--sysroot").arg(to).output();
    }
}
