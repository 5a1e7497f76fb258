//! Finds eke's other programs.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The path of the program beside the running one. If it does not exist, the bare name, which execvp searches in PATH.
pub fn beside(name: &str) -> PathBuf {
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join(name)));
    beside.filter(|p| p.exists()).unwrap_or_else(|| name.into())
}

/// Why a program is not executed.
#[derive(Debug, PartialEq, Eq)]
pub enum NotFound {
    /// It is neither beside the running program nor in PATH.
    Nowhere,
    /// An untrusted user can replace it.
    Writable {
        /// The file or directory that others can write.
        path: PathBuf,
    },
}

impl std::fmt::Display for NotFound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nowhere => f.write_str("it is not installed"),
            Self::Writable { path } => write!(f, "{} is writable for other users", path.display()),
        }
    }
}

/// The program of this name, beside the running one or in PATH. As root it must be in a place where only users can write who can also
/// replace the running program.
///
/// # Errors
/// See [`NotFound`].
pub fn trusted(name: &str) -> Result<PathBuf, NotFound> {
    let exe = std::env::current_exe().ok();
    let beside = exe.as_deref().and_then(Path::parent).map(Path::to_owned);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let Some(found) = found(name, beside, &path) else { return Err(NotFound::Nowhere) };
    if !rustix::process::geteuid().is_root() {
        return Ok(found);
    }
    let own = exe.and_then(|exe| std::fs::metadata(exe).ok());
    match first_writable(&found, own.map_or((0, 0), |own| (own.uid(), own.gid()))) {
        Some(path) => Err(NotFound::Writable { path }),
        None => Ok(found),
    }
}

/// Without links, so that what is checked is what is executed. Relative directories in PATH are left out.
fn found(name: &str, beside: Option<PathBuf>, path: &OsStr) -> Option<PathBuf> {
    let directories = beside.into_iter().chain(std::env::split_paths(path)).filter(|dir| dir.is_absolute());
    let files = directories.filter_map(|dir| dir.join(name).canonicalize().ok());
    files
        .into_iter()
        .find(|file| rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok() && file.is_file())
}

/// The first of the file and the directories above it that is not only root's and the trusted owner's.
fn first_writable(file: &Path, trusted: (u32, u32)) -> Option<PathBuf> {
    let is_safe = |(depth, path): (usize, &Path)| {
        let stat = std::fs::symlink_metadata(path).ok()?;
        is_safe(stat.uid(), stat.gid(), stat.mode(), trusted, depth).then_some(())
    };
    file.ancestors()
        .enumerate()
        .find(|(depth, path)| is_safe((*depth, path)).is_none())
        .map(|(_, path)| path.to_owned())
}

/// Depth 0 is the file, 1 its directory. In a directory with the sticky bit others cannot replace what is not theirs, but they can add
/// files, so the program's own directory must not be one.
fn is_safe(uid: u32, gid: u32, mode: u32, (own_uid, own_gid): (u32, u32), depth: usize) -> bool {
    const STICKY: u32 = 0o1000;
    let may_add = depth > 1 && mode & STICKY != 0;
    let owner = uid == 0 || uid == own_uid;
    let group = mode & 0o020 == 0 || gid == 0 || gid == own_gid;
    owner && (may_add || (group && mode & 0o002 == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_safe_if_only_root_and_the_owner_of_eke_write_it() {
        let root = (0, 0);
        assert!(is_safe(0, 0, 0o755, root, 1));
        assert!(is_safe(0, 0, 0o775, root, 1), "root's group");
        assert!(!is_safe(1000, 0, 0o755, root, 1), "another user's");
        assert!(!is_safe(0, 50, 0o775, root, 1), "another group's");
        assert!(!is_safe(0, 0, 0o757, root, 0), "everybody's");
        assert!(is_safe(1000, 1000, 0o775, (1000, 1000), 1), "a build directory of eke's own owner");
    }

    #[test]
    fn below_a_sticky_directory_it_is_safe_and_in_one_it_is_not() {
        assert!(is_safe(0, 0, 0o1777, (0, 0), 2));
        assert!(!is_safe(0, 0, 0o1777, (0, 0), 1));
        assert!(!is_safe(0, 0, 0o777, (0, 0), 2));
    }

    #[test]
    fn the_one_beside_comes_first_and_relative_directories_are_left_out() {
        let sh = |beside: Option<&str>, path: &str| found("sh", beside.map(PathBuf::from), path.as_ref());
        assert_eq!(sh(None, ".::bin"), None);
        assert_eq!(sh(Some("/nonexistent"), "/bin"), Path::new("/bin/sh").canonicalize().ok());
        assert_eq!(found("eke-no-such-program", None, "/bin".as_ref()), None);
    }
}
