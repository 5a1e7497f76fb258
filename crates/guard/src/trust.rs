//! Whether the name of a program is root's word or its user's.
//!
//! A user chooses `comm`, and in a user namespace the path of an executable, too: a file of root can be bound to any name. So a
//! name counts if root alone could give it: the file is root's, and lies where the process says that it does, below
//! directories that only root (or a group of root's choice) writes to.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use eke_linux::Root;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, Statx, StatxFlags, openat, openat2, statx};
use rustix::io::{Errno, Result};

use crate::process::FileId;

/// The file that a process executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Executable {
    file: FileId,
    is_roots: bool,
    is_deleted: bool,
    is_set_user_id: bool,
}

/// What is known of a program's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// The name that root gave it; `None` if a user could have.
    Known(Option<String>),
    /// Only a disk or a server knows, and the guard waits for neither. At another time the kernel may know, too.
    NotCached,
}

impl Trust {
    /// The name that root gave it, as far as that is known.
    pub fn name(self) -> Option<String> {
        if let Self::Known(name) = self { name } else { None }
    }
}

/// Nothing here asks a server: a file system that hangs must not hang the guard.
const NO_WAIT: AtFlags = AtFlags::STATX_DONT_SYNC;
const S_ISUID: u16 = 0o4000;

impl Executable {
    /// Of this process; `None` without CAP_SYS_PTRACE.
    pub fn of(root: &Root, pid: u32) -> Option<Self> {
        let found =
            statx(CWD, root.path(format!("proc/{pid}/exe")), NO_WAIT, StatxFlags::BASIC_STATS).ok()?;
        Some(Self {
            file: identity(&found),
            is_roots: found.stx_uid == 0,
            is_deleted: found.stx_nlink == 0,
            is_set_user_id: found.stx_mode & S_ISUID != 0,
        })
    }

    /// Which file it is.
    pub fn file(self) -> FileId {
        self.file
    }

    /// Whether users execute it with root's rights.
    pub fn is_set_user_id(self) -> bool {
        self.is_roots && self.is_set_user_id
    }

    /// Its file name, if that can be trusted.
    pub fn trust(self, root: &Root, pid: u32) -> Trust {
        if !self.is_roots {
            return Trust::Known(None);
        }
        known(self.name_below(root, Path::new(""), pid))
    }

    /// Its file name in a container, if only root can have made the container's mounts: a user needs a user namespace for that, or
    /// a set-user-id program that mounts for users (Singularity, older bubblewrap), which runs their own programs as themselves.
    pub fn trust_in_container(self, root: &Root, pid: u32) -> Trust {
        let is_contained = || is_as_process_1(root, pid, "user") && !is_as_process_1(root, pid, "mnt");
        // Nothing tells the path of a deleted file, and its container's mounts are not the machine's.
        if !self.is_roots || self.is_deleted || !is_contained() {
            return Trust::Known(None);
        }
        known(self.name_below(root, Path::new(&format!("proc/{pid}/root")), pid))
    }

    /// `top`: the directory that the paths of its mounts begin at, below the root.
    fn name_below(self, root: &Root, top: &Path, pid: u32) -> Result<Option<String>> {
        let link = root.path(format!("proc/{pid}/exe"));
        let Ok(link) = std::fs::read_link(link) else { return Ok(None) };
        let path = link.strip_prefix(root.path("")).unwrap_or(&link);
        let (Some(parent), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
        else {
            return Ok(None);
        };
        let name = name.trim_end_matches(" (deleted)");
        let Some(dir) = directory_of_root(&root.path(top), parent)? else { return Ok(None) };
        let is_there = if self.is_deleted {
            // An upgrade replaced it, so nothing at its path tells. Only the machine's mounts have no paths of users' choice.
            is_as_process_1(root, pid, "mnt")
        } else {
            let file = open_cached(dir.as_fd(), name, OFlags::PATH)?;
            statx(file, c"", AtFlags::EMPTY_PATH | NO_WAIT, StatxFlags::BASIC_STATS)
                .is_ok_and(|found| identity(&found) == self.file)
        };
        Ok(is_there.then(|| unwrapped(name).to_owned()))
    }
}

fn known(name: Result<Option<String>>) -> Trust {
    match name {
        Err(Errno::AGAIN) => Trust::NotCached,
        name => Trust::Known(name.ok().flatten()),
    }
}

/// NixOS renames a program to `.NAME-wrapped` and has a script of its name start it.
fn unwrapped(name: &str) -> &str {
    name.strip_prefix('.').and_then(|name| name.strip_suffix("-wrapped")).unwrap_or(name)
}

fn identity(found: &Statx) -> FileId {
    FileId { device: (found.stx_dev_major, found.stx_dev_minor), inode: found.stx_ino }
}

/// Opens a directory, unless it or one above it is another user's, or anybody may write there. Stops before it enters such a
/// directory, where a user may have mounted anything.
fn directory_of_root(top: &Path, path: &Path) -> Result<Option<OwnedFd>> {
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let mut dir = openat(CWD, top, flags | OFlags::CLOEXEC, Mode::empty())?;
    for component in path.components() {
        let Component::Normal(name) = component else { continue };
        if !is_of_root(dir.as_fd()) {
            return Ok(None);
        }
        dir = open_cached(dir.as_fd(), name, flags)?;
    }
    Ok(is_of_root(dir.as_fd()).then_some(dir))
}

/// Opens a name as far as the kernel has it in memory; EAGAIN says that it would have to ask a disk, an NFS server or an
/// automounter. A running program's own path is in memory on local disks. Before Linux 5.12 it waits for them.
fn open_cached(dir: BorrowedFd<'_>, name: impl rustix::path::Arg + Copy, flags: OFlags) -> Result<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::CACHED | ResolveFlags::NO_SYMLINKS;
    match openat2(dir, name, flags, Mode::empty(), resolve) {
        // An older kernel, or a container whose filter does not know the call
        Err(Errno::NOSYS | Errno::INVAL | Errno::PERM) => openat(dir, name, flags, Mode::empty()),
        opened => opened,
    }
}

fn is_of_root(dir: impl AsFd) -> bool {
    statx(dir, c"", AtFlags::EMPTY_PATH | NO_WAIT, StatxFlags::BASIC_STATS)
        .is_ok_and(|found| found.stx_uid == 0 && u32::from(found.stx_mode) & 0o002 == 0)
}

/// Whether a process is in the machine's namespace of this kind. Compared with process 1: the agent's unit has mounts of its own.
fn is_as_process_1(root: &Root, pid: u32, kind: &str) -> bool {
    let of = |pid: u32| std::fs::read_link(root.path(format!("proc/{pid}/ns/{kind}"))).ok();
    of(1).is_some_and(|machines| of(pid) == Some(machines))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use eke_testkit::program::KilledOnDrop;
    use eke_testkit::wait::wait_for;

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
        match Executable::of(root, 7)?.trust(root, 7) {
            Trust::Known(name) => name,
            Trust::NotCached => panic!("it was just made"),
        }
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

    /// An upgrade replaces the programs that run.
    #[test]
    fn a_replaced_program_keeps_its_name_among_the_machines_mounts() {
        if !rustix::process::geteuid().is_root() {
            return eke_testkit::real::skip("trust", "only root makes files of other users");
        }
        let replaced = Executable {
            file: FileId { device: (0, 0), inode: 0 },
            is_roots: true,
            is_deleted: true,
            is_set_user_id: false,
        };
        for (mounts, counts) in [("mnt:[1]", true), ("mnt:[7]", false)] {
            let (tree, root) = root("usr/bin", "usr/bin/gnome-shell (deleted)", 0o755, 0);
            // The agent has mounts of its own, as its unit says.
            for (process, mounts) in [("1", "mnt:[1]"), ("self", "mnt:[2]"), ("7", mounts)] {
                fs::create_dir_all(tree.path().join(format!("proc/{process}/ns"))).unwrap();
                symlink(mounts, tree.path().join(format!("proc/{process}/ns/mnt"))).unwrap();
            }
            let name = counts.then(|| "gnome-shell".to_owned());
            assert_eq!(replaced.trust(&root, 7), Trust::Known(name), "{mounts}");
        }
    }

    #[test]
    fn a_wrapper_of_nixos_hides_no_name() {
        for (file, name) in [
            (".gnome-shell-wrapped", "gnome-shell"),
            (".gnome-shell", ".gnome-shell"),
            ("sway-wrapped", "sway-wrapped"),
        ] {
            assert_eq!(unwrapped(file), name);
        }
    }

    /// The path of a process may lead to a server that does not answer.
    #[test]
    fn a_path_that_the_kernel_would_have_to_look_up_is_not_waited_for() {
        // As a directory of a server: /proc remembers no process that does not exist, and no kernel has that many.
        let dir = openat(CWD, "/proc", OFlags::PATH, Mode::empty()).unwrap();
        if openat2(CWD, "/", OFlags::PATH, Mode::empty(), ResolveFlags::CACHED).is_err() {
            return eke_testkit::real::skip("trust", "Linux older than 5.12");
        }
        let answer = open_cached(dir.as_fd(), "4294967295", OFlags::PATH | OFlags::DIRECTORY);
        assert_eq!(answer.err(), Some(Errno::AGAIN));
    }

    #[test]
    fn a_program_in_a_container_has_a_name_only_if_root_alone_makes_the_containers_mounts() {
        if !rustix::process::geteuid().is_root() {
            return eke_testkit::real::skip("trust", "only root makes files of other users");
        }
        let named = Some("program".to_owned());
        for (user, mounts, is_deleted, name) in [
            ("user:[1]", "mnt:[7]", false, named),
            ("user:[7]", "mnt:[7]", false, None),
            ("user:[1]", "mnt:[1]", false, None),
            ("user:[1]", "mnt:[7]", true, None),
        ] {
            let (tree, root) = root("container/usr/bin", "usr/bin/program", 0o755, 0);
            let at = |path: &str| tree.path().join(path);
            symlink(at("container"), at("proc/7/root")).unwrap();
            for (process, user, mounts) in [("1", "user:[1]", "mnt:[1]"), ("7", user, mounts)] {
                fs::create_dir_all(at(&format!("proc/{process}/ns"))).unwrap();
                symlink(user, at(&format!("proc/{process}/ns/user"))).unwrap();
                symlink(mounts, at(&format!("proc/{process}/ns/mnt"))).unwrap();
            }
            let file = statx(CWD, at("container/usr/bin/program"), NO_WAIT, StatxFlags::BASIC_STATS).unwrap();
            let executable =
                Executable { file: identity(&file), is_roots: true, is_deleted, is_set_user_id: false };
            let found = executable.trust_in_container(&root, 7);
            assert_eq!(found, Trust::Known(name), "{user} {mounts} {is_deleted}");
            let other = Executable { file: FileId { inode: 0, ..executable.file }, ..executable };
            assert_eq!(other.trust_in_container(&root, 7), Trust::Known(None), "another file");
        }
    }

    #[test]
    fn the_path_of_a_program_in_mounts_of_its_own_begins_at_its_root() {
        if !Path::new("/proc/self/ns/user").exists() || !rustix::process::geteuid().is_root() {
            return eke_testkit::real::skip("trust", "no namespaces, or not root");
        }
        let script = "mount --make-rprivate / && mount -t tmpfs -o mode=755 none /mnt && cp /usr/bin/sleep /mnt/postgres && exec /mnt/postgres 60";
        let mut command = std::process::Command::new("unshare");
        let mut child = KilledOnDrop(command.args(["-m", "sh", "-c", script]).spawn().unwrap());
        let (host, pid) = (Root::host(), child.0.id());
        let exe = || fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        wait_for("its program", || exe().ends_with("postgres") || !matches!(child.0.try_wait(), Ok(None)));
        let Some(executable) = Executable::of(&host, pid).filter(|_| exe().ends_with("postgres")) else {
            return eke_testkit::real::skip("trust", "no mounts of its own");
        };
        let top = format!("proc/{pid}/root");
        assert_eq!(executable.name_below(&host, Path::new(&top), pid), Ok(Some("postgres".into())));
        assert!(!matches!(executable.trust(&host, pid), Trust::Known(Some(_))), "as the agent sees it");
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
                seen = Executable::of(&host, child.id()).map(|exe| exe.trust(&host, child.id()));
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(seen, Some(Trust::Known(None)), "it executes sleep, and calls it env");
    }
}
