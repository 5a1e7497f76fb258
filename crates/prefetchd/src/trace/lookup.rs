//! Finds out what is at a path that a user chose. No step waits: not at a server, and not for an automatic mount.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, readlinkat};
use rustix::io::Errno;

use crate::file::open::{beneath, top as open_top};

/// The most links on the way, as in the kernel (MAXSYMLINKS).
const LINKS: usize = 40;
const FLAGS: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What is at a path.
enum Found {
    /// Its descriptor (O_PATH).
    Here(OwnedFd, FileType),
    /// A link is on the way; this is the path behind it.
    Elsewhere(PathBuf),
}

/// What an absolute path leads to below `top`, perhaps by links. `answers` tells whether a lookup of a path without links cannot hang; at a path that
/// may hang nothing is found.
pub(super) fn kind(top: &Path, path: &Path, answers: &dyn Fn(&Path) -> bool) -> Option<FileType> {
    follow(top, path, answers).map(|(_, kind)| kind)
}

/// Whether an absolute path leads to a directory with something in it. An empty one may be a mount point without its mount.
pub(super) fn is_filled(top: &Path, path: &Path, answers: &dyn Fn(&Path) -> bool) -> bool {
    let Some((dir, FileType::Directory)) = follow(top, path, answers) else { return false };
    let flags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
    let entries = openat(&dir, ".", flags, Mode::empty()).and_then(Dir::new);
    let is_entry = |name: &[u8]| name != b"." && name != b"..";
    entries
        .is_ok_and(|mut all| all.any(|entry| entry.is_ok_and(|entry| is_entry(entry.file_name().to_bytes()))))
}

fn follow(top: &Path, path: &Path, answers: &dyn Fn(&Path) -> bool) -> Option<(OwnedFd, FileType)> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        match look_up(top, &path, answers)? {
            Found::Elsewhere(next) => path = next,
            Found::Here(found, kind) => return Some((found, kind)),
        }
    }
    None
}

/// What is at an absolute path below `top`, in the file system that is mounted at `place` there; by a descriptor that opens nothing (O_PATH). A link or
/// another mount on the way hides it, so nobody can lead the lookup to a server that does not answer. Before Linux 5.6 it is walked to, and `answers`
/// alone tells what may hang.
pub(super) fn in_mount(
    top: &Path,
    place: &Path,
    path: &Path,
    answers: &dyn Fn(&Path) -> bool,
) -> Option<OwnedFd> {
    let inside = path.strip_prefix(place).ok().filter(|_| answers(path))?;
    let within = |place: OwnedFd| match inside.as_os_str().is_empty() {
        true => Ok(place),
        false => beneath(&place, inside, ResolveFlags::NO_XDEV),
    };
    match beneath(&open_top(top).ok()?, place, ResolveFlags::empty()).and_then(within) {
        Ok(found) => Some(found),
        // EPERM: a filter of system calls that is older than openat2
        Err(Errno::NOSYS | Errno::PERM) => match look_up(top, path, answers)? {
            Found::Here(found, _) => Some(found),
            Found::Elsewhere(_) => None,
        },
        Err(_) => None,
    }
}

/// Walks by descriptors, so that nobody can put a link into the way meanwhile.
fn look_up(top: &Path, path: &Path, answers: &dyn Fn(&Path) -> bool) -> Option<Found> {
    let path = without_dots(path)?;
    let mut fd = openat(CWD, top, FLAGS.difference(OFlags::NOFOLLOW), Mode::empty()).ok()?;
    let mut at = PathBuf::from("/");
    let mut kind = FileType::Directory;
    let mut names = path.components();
    names.next();
    while let Some(name) = names.next() {
        at.push(name);
        if !answers(&at) {
            return None;
        }
        fd = openat(&fd, name.as_os_str(), FLAGS, Mode::empty()).ok()?;
        kind = FileType::from_raw_mode(fstat(&fd).ok()?.st_mode);
        if kind == FileType::Symlink {
            at.pop();
            return Some(Found::Elsewhere(at.join(target(&fd)?).join(names.as_path())));
        }
    }
    Some(Found::Here(fd, kind))
}

fn target(link: &OwnedFd) -> Option<PathBuf> {
    let target = readlinkat(link, "", Vec::new()).ok()?;
    Some(OsStr::from_bytes(target.as_bytes()).into())
}

/// Resolves `.` and `..` in the text; `None` for a relative path.
fn without_dots(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = plain.pop(),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain.is_absolute().then_some(plain)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "test code")]

    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_or_a_mount_on_the_way_hides_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("home/u/dir")).unwrap();
        fs::create_dir_all(at("elsewhere")).unwrap();
        for file in ["home/u/dir/file", "elsewhere/file"] {
            fs::write(at(file), "x").unwrap();
        }
        let has = |place: &str, path: &str| {
            in_mount(dir.path(), Path::new(place), Path::new(path), &|_| true).is_some()
        };
        assert!(has("/home", "/home/u/dir/file") && has("/", "/home/u/dir/file"));
        assert!(has("/home/u/dir/file", "/home/u/dir/file"), "a file can be a mount's place");
        assert!(!has("/srv", "/home/u/dir/file"));
        fs::rename(at("home/u/dir"), at("home/u/other")).unwrap();
        symlink("../../elsewhere", at("home/u/dir")).unwrap();
        assert!(!has("/home", "/home/u/dir/file"), "it leads elsewhere now");
        let host = |place: &str, path: &str, answers: &dyn Fn(&Path) -> bool| {
            in_mount(Path::new("/"), Path::new(place), Path::new(path), answers).is_some()
        };
        assert!(host("/proc", "/proc/version", &|_| true));
        assert!(!host("/", "/proc/version", &|_| true), "another file system is mounted there now");
        assert!(!host("/proc", "/proc/version", &|_| false));
    }

    #[test]
    fn only_a_regular_file_that_answers_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("usr/bin")).unwrap();
        fs::write(at("usr/bin/tool"), "x").unwrap();
        symlink("usr/bin", at("bin")).unwrap();
        symlink("/bin/tool", at("usr/bin/other")).unwrap();
        symlink("../../usr/bin/other", at("usr/bin/third")).unwrap();
        symlink("loop", at("loop")).unwrap();
        symlink("gone", at("dangling")).unwrap();
        let is_file = |path: &str, answers: &dyn Fn(&Path) -> bool| {
            kind(dir.path(), Path::new(path), answers) == Some(FileType::RegularFile)
        };
        let all = |path: &str| is_file(path, &|_| true);
        for path in ["/usr/bin/tool", "/bin/tool", "/usr/bin/other", "/bin/./third", "/usr/bin/../bin/tool"] {
            assert!(all(path), "{path}");
        }
        for path in ["/usr/bin", "/", "/loop", "/dangling", "/gone", "usr/bin/tool", "/usr/bin/tool/x", ""] {
            assert!(!all(path), "{path}");
        }
        let no_usr = |path: &Path| !path.starts_with("/usr");
        assert!(!is_file("/bin/tool", &no_usr), "behind a link");
        assert_eq!(kind(dir.path(), Path::new("/bin"), &|_| true), Some(FileType::Directory));
    }
}
