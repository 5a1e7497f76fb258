//! Output files, which hold a user's commands: readable by their owner only, and never over an existing file without `--force`.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::exit::{Failure, Status};

/// An output file cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It exists already.
    #[error("{} exists already and was not changed: give another name, or --force", .0.display())]
    Exists(PathBuf),
    /// The file system refuses.
    #[error("cannot {operation} {}: {source}", path.display())]
    File {
        /// A verb: create, open, write.
        operation: &'static str,
        /// Its path.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// `Result` with this module's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The exit status of a program that ends with this error.
    pub fn status(&self) -> Status {
        match self {
            Self::Exists(_) => Status::Usage,
            Self::File { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Status::NotPermitted
            }
            Self::File { .. } => Status::Failed,
        }
    }

    fn file(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { operation, path: path.to_owned(), source }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(error.status(), error.to_string())
    }
}

/// Writes a new file, mode 0600. With `overwrite` it replaces an existing one. A pipe, a terminal or another device is written to and never
/// replaced. A link is followed only if it is one of the kernel's, such as /dev/stdout: others may belong to another user.
///
/// # Errors
/// [`Error::Exists`], or the error of the file system.
pub fn write(path: &Path, text: &str, overwrite: bool) -> Result<()> {
    let mut file = if is_device(path) { device(path)? } else { create(path, overwrite)? };
    file.write_all(text.as_bytes()).map_err(Error::file("write", path))
}

/// Checks, as far as possible in advance, that [`write`] can write this file.
///
/// # Errors
/// Those of [`write`]; also if the directory does not exist.
pub fn may_write(path: &Path, overwrite: bool) -> Result<()> {
    if is_device(path) {
        // A pipe that nobody reads yet would lose what takes minutes to measure.
        return if is_pipe(path) { device(path).map(drop) } else { Ok(()) };
    }
    match std::fs::symlink_metadata(path) {
        Ok(there) if !there.is_file() => return Err(not_regular(path)),
        Ok(_) if !overwrite => return Err(Error::Exists(path.to_owned())),
        _ => {}
    }
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match std::fs::metadata(directory) {
        Ok(there) if there.is_dir() => Ok(()),
        Ok(_) => Err(Error::file("create", path)(io::ErrorKind::NotADirectory.into())),
        Err(e) => Err(Error::file("create", path)(e)),
    }
}

/// Creates a file, mode 0600; with `overwrite` it replaces an existing regular file.
///
/// # Errors
/// [`Error::Exists`], or the error of the file system.
pub fn create(path: &Path, overwrite: bool) -> Result<File> {
    let is_file = || std::fs::symlink_metadata(path).is_ok_and(|m| m.is_file());
    if overwrite && is_file() {
        std::fs::remove_file(path).map_err(Error::file("replace", path))?;
    }
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    opened.map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists if overwrite || !is_file() => not_regular(path),
        io::ErrorKind::AlreadyExists => Error::Exists(path.to_owned()),
        _ => Error::file("create", path)(e),
    })
}

fn not_regular(path: &Path) -> Error {
    Error::file("replace", path)(io::Error::other("it is not a regular file"))
}

/// Opens a pipe, a terminal or another device. A pipe that nobody reads is an error: its open would wait.
fn device(path: &Path) -> Result<File> {
    let nofollow = if is_kernels(path) { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY | nofollow).bits() as i32;
    let opened = OpenOptions::new().write(true).custom_flags(flags).open(path);
    let file = opened.map_err(|e| match e.raw_os_error() {
        Some(error) if error == rustix::io::Errno::NXIO.raw_os_error() && is_pipe(path) => {
            Error::file("write", path)(io::Error::other("no program reads it"))
        }
        _ => Error::file("open", path)(e),
    })?;
    if file.metadata().is_ok_and(|m| m.is_file()) {
        return Err(Error::Exists(path.to_owned()));
    }
    let waits = fcntl_getfl(&file).and_then(|flags| fcntl_setfl(&file, flags - OFlags::NONBLOCK));
    waits.map_err(|e| Error::file("open", path)(e.into()))?;
    Ok(file)
}

fn is_device(path: &Path) -> bool {
    let there = if is_kernels(path) { std::fs::metadata(path) } else { std::fs::symlink_metadata(path) };
    there.is_ok_and(|m| !m.is_file() && !m.is_dir() && !m.is_symlink())
}

fn is_pipe(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| m.file_type().is_fifo())
}

/// Is it in a directory whose links nobody but the kernel and root makes? /dev/shm is for all users.
fn is_kernels(path: &Path) -> bool {
    let directories = ["/dev", "/dev/fd", "/proc/self/fd"].map(Path::new);
    path.parent().is_some_and(|parent| directories.contains(&parent))
}

/// Replaces a file as a whole, readable by everybody: a collector that reads at any time sees the old text or the new one. A pipe, a
/// terminal or another device is written to and never replaced, nor is a link.
///
/// # Errors
/// The error of the file system.
pub fn replace_for_all(path: &Path, text: &str) -> Result<()> {
    if is_device(path) {
        return write(path, text, true);
    }
    if std::fs::symlink_metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err(not_regular(path));
    }
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    let beside = path.with_file_name(name);
    let made = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&beside);
    let written = made.and_then(|mut made| {
        // Also under a umask that leaves others nothing
        made.set_permissions(Permissions::from_mode(0o644))?;
        made.write_all(text.as_bytes())
    });
    written.and_then(|()| std::fs::rename(&beside, path)).map_err(|e| {
        let _ = std::fs::remove_file(&beside);
        Error::file("write", path)(e)
    })
}

/// Makes a directory for its owner only, if it does not exist.
///
/// # Errors
/// The error of the file system.
pub fn directory(path: &Path) -> Result<()> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(Error::file("create", path))
}

/// `STEM.ENDING` in `directory`, or the first of `STEM-2.ENDING`, `STEM-3.ENDING` ... that does not exist.
pub fn free_name(directory: &Path, stem: &str, ending: &str) -> PathBuf {
    let first = directory.join(format!("{stem}.{ending}"));
    let more = (2..10_000).map(|n| directory.join(format!("{stem}-{n}.{ending}")));
    let is_free = |path: &PathBuf| std::fs::symlink_metadata(path).is_err();
    std::iter::once(first.clone()).chain(more).find(is_free).unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{FileTypeExt, MetadataExt};

    use rustix::fs::{CWD, Mode, mkfifoat};

    #[test]
    fn a_pipe_is_written_to_and_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        let nonblock = OFlags::NONBLOCK.bits() as i32;
        let reader = || OpenOptions::new().read(true).custom_flags(nonblock).open(&path).unwrap();
        for write in [write, |path: &Path, text: &str, _| replace_for_all(path, text)] {
            let alone = write(&path, "a", true).unwrap_err().to_string();
            assert!(alone.ends_with("no program reads it"), "{alone}");
            let mut reader = reader();
            assert!(may_write(&path, false).is_ok());
            write(&path, "abc", false).unwrap();
            let mut text = String::new();
            reader.read_to_string(&mut text).unwrap();
            assert_eq!(text, "abc");
            assert!(std::fs::symlink_metadata(&path).unwrap().file_type().is_fifo());
        }
    }

    #[test]
    fn a_link_to_a_pipe_or_device_is_neither_followed_nor_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let [link, pipe] = ["link", "pipe"].map(|name| dir.path().join(name));
        mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        for to in [Path::new("/dev/null"), &pipe] {
            std::os::unix::fs::symlink(to, &link).unwrap();
            for refused in [
                write(&link, "a", true),
                write(&link, "a", false),
                replace_for_all(&link, "a"),
                may_write(&link, false),
                create(&link, true).map(drop),
                create(dir.path(), true).map(drop),
            ] {
                let why = refused.unwrap_err().to_string();
                assert!(why.contains("not a regular file"), "{why}");
            }
            assert_eq!(std::fs::read_link(&link).unwrap(), to);
            std::fs::remove_file(&link).unwrap();
        }
        assert!(!is_kernels(Path::new("/dev/shm/a")) && is_kernels(Path::new("/dev/stdout")));
    }

    #[test]
    fn a_link_of_the_kernels_is_followed() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let mut reader = File::from(reader);
        let path = PathBuf::from(format!("/proc/self/fd/{}", writer.as_raw_fd()));
        assert!(may_write(&path, false).is_ok());
        write(&path, "a", false).unwrap();
        replace_for_all(&path, "b").unwrap();
        let mut text = [0; 2];
        reader.read_exact(&mut text).unwrap();
        assert_eq!(&text, b"ab");
    }

    #[test]
    fn a_link_to_a_file_for_all_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("a.prom"), dir.path().join("link"));
        replace_for_all(&path, "b").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(replace_for_all(&link, "c").unwrap_err().to_string().contains("not a regular file"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "b");
    }

    #[test]
    fn files_are_for_their_owner_and_no_other_file_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let path = free_name(dir.path(), "evince", "sqlite");
        assert!(path.ends_with("evince.sqlite"));
        write(&path, "a", false).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(matches!(write(&path, "b", false), Err(Error::Exists(_))));
        assert!(matches!(may_write(&path, false), Err(Error::Exists(_))));
        assert!(may_write(&path, true).is_ok() && may_write(dir.path(), true).is_err());
        assert!(may_write(&dir.path().join("no/a.json"), false).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a");
        write(&path, "b", true).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "b");
        assert!(free_name(dir.path(), "evince", "sqlite").ends_with("evince-2.sqlite"));
    }
}
