//! Whether the name of a program is root's word or its user's.
//!
//! A user chooses `comm`, and in a user namespace the path of an executable, too: a file of root can be bound to any name. So a
//! name counts if root alone could give it: the file is root's, and lies where the process says that it does, below
//! directories that only root (or a group of root's choice) writes to.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use eke_linux::Root;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Statx, StatxFlags, openat, statx};

/// The file that a process executes, if it is root's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Executable {
    file: (u32, u32, u64),
    is_deleted: bool,
}

/// Nothing here asks a server: a file system that hangs must not hang the guard.
const NO_WAIT: AtFlags = AtFlags::STATX_DONT_SYNC;

impl Executable {
    /// Of this process; `None` if its file is not root's.
    pub fn of(root: &Root, pid: u32) -> Option<Self> {
        let found =
            statx(CWD, root.path(format!("proc/{pid}/exe")), NO_WAIT, StatxFlags::BASIC_STATS).ok()?;
        (found.stx_uid == 0).then(|| Self { file: identity(&found), is_deleted: found.stx_nlink == 0 })
    }

    /// Its file name, if that can be trusted.
    pub fn trusted_name(self, root: &Root, pid: u32) -> Option<String> {
        let link = std::fs::read_link(root.path(format!("proc/{pid}/exe"))).ok()?;
        let path = link.strip_prefix(root.path("")).unwrap_or(&link);
        let name = path.file_name()?.to_str()?.trim_end_matches(" (deleted)");
        let dir = directory_of_root(root, path.parent()?)?;
        let is_there = if self.is_deleted {
            // An upgrade replaced it, so nothing at its path tells. Only this mount namespace has no paths of users' choice.
            has_our_mounts(root, pid)
        } else {
            let flags = AtFlags::SYMLINK_NOFOLLOW | NO_WAIT;
            statx(dir, name, flags, StatxFlags::BASIC_STATS).is_ok_and(|found| identity(&found) == self.file)
        };
        is_there.then(|| name.to_owned())
    }
}

fn identity(found: &Statx) -> (u32, u32, u64) {
    (found.stx_dev_major, found.stx_dev_minor, found.stx_ino)
}

/// Opens a directory, unless it or one above it is another user's, or anybody may write there. Stops before it enters such a
/// directory, where a user may have mounted anything.
fn directory_of_root(root: &Root, path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut dir = openat(CWD, root.path(""), flags, Mode::empty()).ok()?;
    for component in path.components() {
        let Component::Normal(name) = component else { continue };
        is_of_root(dir.as_fd())?;
        dir = openat(&dir, name, flags, Mode::empty()).ok()?;
    }
    is_of_root(dir.as_fd())?;
    Some(dir)
}

fn is_of_root(dir: impl AsFd) -> Option<()> {
    let found = statx(dir, c"", AtFlags::EMPTY_PATH | NO_WAIT, StatxFlags::BASIC_STATS).ok()?;
    (found.stx_uid == 0 && u32::from(found.stx_mode) & 0o002 == 0).then_some(())
}

fn has_our_mounts(root: &Root, pid: u32) -> bool {
    let of = |pid: &str| std::fs::read_link(root.path(format!("proc/{pid}/ns/mnt"))).ok();
    of("self").is_some_and(|ours| of(&pid.to_string()) == Some(ours))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    /// A root with `program` in `dir`, which process 7 executes as `shown`.
    fn root(dir: &str, shown: &str, mode: u32, owner: u32) -> (tempfile::TempDir, Root) {
        let tree = tempfile::tempdir().unwrap();
        let at = |path: &str| tree.path().join(path);
        fs::create_dir_all(at(dir)).unwrap();
        fs::create_dir_all(at("proc/7")).unwrap();
        fs::File::create_new(at(&format!("{dir}/program"))).unwrap();
        fs::set_permissions(at(dir), fs::Permissions::from_mode(mode)).unwrap();
        chown(at(dir), Some(owner), None).unwrap();
        symlink(at(shown), at("proc/7/exe")).unwrap();
        let root = Root::at(tree.path());
        (tree, root)
    }

    fn name(root: &Root) -> Option<String> {
        Executable::of(root, 7)?.trusted_name(root, 7)
    }

    #[test]
    fn a_name_counts_below_directories_of_root() {
        if !rustix::process::geteuid().is_root() {
            return eke_testkit::real::skip("trust", "only root makes files of other users");
        }
        for (dir, mode, owner, counts) in [
            ("usr/bin", 0o755, 0, true),
            ("usr/local/bin", 0o2775, 0, true),
            ("home/user", 0o755, 1000, false),
            ("tmp", 0o1777, 0, false),
        ] {
            let (_tree, root) = root(dir, &format!("{dir}/program"), mode, owner);
            assert_eq!(name(&root), counts.then(|| "program".to_owned()), "{dir}");
        }
    }

    #[test]
    fn a_file_of_another_user_has_no_name() {
        if !rustix::process::geteuid().is_root() {
            return eke_testkit::real::skip("trust", "only root makes files of other users");
        }
        let (tree, root) = root("usr/bin", "usr/bin/program", 0o755, 0);
        chown(tree.path().join("usr/bin/program"), Some(1000), None).unwrap();
        assert_eq!(name(&root), None);
    }

    #[test]
    fn a_file_of_root_that_is_shown_at_another_path_has_no_name() {
        if !Path::new("/proc/self/ns/user").exists() || !rustix::process::geteuid().is_root() {
            return eke_testkit::real::skip("trust", "no namespaces, or not root");
        }
        // As a user does with `unshare -Urm`: this machine's sleep, bound over another program.
        let script =
            "mount --make-rprivate / && mount --bind /usr/bin/sleep /usr/bin/env && exec /usr/bin/env 60";
        let mut child =
            std::process::Command::new("unshare").args(["-m", "sh", "-c", script]).spawn().unwrap();
        let host = Root::host();
        let mut seen = None;
        for _ in 0..100 {
            let link = fs::read_link(format!("/proc/{}/exe", child.id())).unwrap_or_default();
            if link.ends_with("env") {
                seen = Executable::of(&host, child.id()).map(|exe| exe.trusted_name(&host, child.id()));
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(seen, Some(None), "it executes sleep, and calls it env");
    }
}
