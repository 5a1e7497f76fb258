//! What the driver sets for its own process: its root directory, locked memory, merged pages.

use std::io;
use std::path::{Path, PathBuf};

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change};
use rustix::process::{chdir, chroot};
use rustix::thread::UnshareFlags;

/// Why the tree cannot be entered.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot {what} {}: {source}; it needs root, and a tree with the directories proc, dev and tmp", path.display()
)]
pub struct Error {
    what: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// Makes `dir` the root directory of this process, with a `/proc`, the machine's `/dev` and an empty `/tmp`. The mounts are in
/// a namespace of this process and end with it and its children. Call it before starting threads.
///
/// # Errors
/// This process is not root, or a directory to mount on is missing.
pub fn enter_root(dir: &Path) -> Result<(), Error> {
    enter_root_with(dir, &[])
}

/// Like [`enter_root`], and binds directories of this machine into the new `/tmp`, each under the given name.
///
/// # Errors
/// As [`enter_root`], or a directory to bind is missing.
pub fn enter_root_with(dir: &Path, binds: &[(PathBuf, &str)]) -> Result<(), Error> {
    let at = |what, path: &Path, done: rustix::io::Result<()>| {
        done.map_err(|e| Error { what, path: path.to_owned(), source: e.into() })
    };
    at("make a mount namespace for", dir, own_mounts())?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    at("keep the mounts of", dir, mount_change("/", private))?;
    let (proc, dev, tmp) = (dir.join("proc"), dir.join("dev"), dir.join("tmp"));
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    at("mount proc on", &proc, mount("proc", &proc, "proc", flags, None))?;
    at("bind /dev to", &dev, mount_bind_recursive("/dev", &dev))?;
    at("mount a tmpfs on", &tmp, mount("tmpfs", &tmp, "tmpfs", flags, Some(c"mode=1777")))?;
    for (from, name) in binds {
        let to = tmp.join(name);
        at("make", &to, rustix::fs::mkdir(&to, rustix::fs::Mode::from(0o755)))?;
        at("bind to a tree", from, mount_bind_recursive(from, &to))?;
    }
    at("change the root directory to", dir, chroot(dir))?;
    at("enter", dir, chdir("/"))
}

#[expect(unsafe_code, reason = "unshare(2) may remove what other threads rely on")]
fn own_mounts() -> rustix::io::Result<()> {
    // SAFETY: only the mount namespace is unshared: file descriptors, which I/O safety is about, stay shared.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }
}

/// Locks the memory of this process as it is touched, so that the desktop runs short of memory and not the driver. Children do
/// not inherit the lock (mlockall(2)).
///
/// # Errors
/// Not permitted (`RLIMIT_MEMLOCK`), or a kernel before 4.4.
pub fn lock_memory() -> io::Result<()> {
    Ok(mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT)?)
}

/// Asks the kernel to merge equal pages of this process and of the programs that it starts from now on
/// (`PR_SET_MEMORY_MERGE`, Linux 6.4). A fork(2) inherits it since 6.4, execve(2) keeps it since 6.7: on kernels between, the
/// programs do not have it.
///
/// # Errors
/// The kernel lacks it, or it is not permitted (`CAP_SYS_RESOURCE`).
#[expect(unsafe_code, reason = "rustix has no PR_SET_MEMORY_MERGE")]
pub(super) fn merge_same_pages() -> io::Result<()> {
    // SAFETY: this prctl(2) takes plain numbers and touches no memory of this process.
    let done = unsafe { libc::prctl(libc::PR_SET_MEMORY_MERGE, 1, 0, 0, 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_what_is_needed() {
        let error = Error {
            what: "mount proc on",
            path: "/tree/proc".into(),
            source: io::Error::from_raw_os_error(libc::ENOENT),
        };
        assert!(error.to_string().starts_with("cannot mount proc on /tree/proc: No such file"), "{error}");
        assert!(error.to_string().contains("root"), "{error}");
    }
}
