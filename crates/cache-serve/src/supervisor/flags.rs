//! Copies restricting flags (nosuid, nodev, ro …) of the backing directory's mount to the cache's mount when they change.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use eke_linux::parse::mountinfo;
use eke_linux::parse::mountinfo::Mount;
use rustix::mount::{MountFlags, mount_remount};

use eke_cache_mounts::Mount as CacheMount;
use eke_cache_mounts::at;
use eke_cache_mounts::unmount::top;

const LIST: &str = "/proc/self/mountinfo";
/// The flag's name in mountinfo, whether it is copied, and the flag.
const FLAGS: [(&str, bool, MountFlags); 9] = [
    ("nosuid", true, MountFlags::NOSUID),
    ("nodev", true, MountFlags::NODEV),
    ("noexec", true, MountFlags::NOEXEC),
    ("nosymfollow", true, MountFlags::NOSYMFOLLOW),
    ("ro", true, MountFlags::RDONLY),
    ("noatime", false, MountFlags::NOATIME),
    ("nodiratime", false, MountFlags::NODIRATIME),
    ("relatime", false, MountFlags::RELATIME),
    ("sync", false, MountFlags::SYNCHRONOUS),
];

/// A file on which poll(2) reports `POLLPRI` when mounts or their flags have changed (proc_pid_mounts(5)).
pub(super) fn changes() -> Option<File> {
    File::open(LIST).ok()
}

/// Adds the restricting flags of the mount of `dir` to the mount `shown`.
///
/// # Errors
/// What the kernel answers.
pub(super) fn follow(dir: &OwnedFd, shown: &CacheMount) -> io::Result<()> {
    let all = mountinfo::parse(&std::fs::read(LIST)?);
    let home = at::mount_without_asking(dir);
    let of = |id: Option<u64>| all.iter().find(|m| Some(m.id) == id);
    let Some(flags) = of(home).zip(of(Some(shown.id))).and_then(|(home, own)| new_flags(home, own)) else {
        return Ok(());
    };
    let Some(top) = top(shown)? else { return Ok(()) };
    Ok(mount_remount(at::link(top.as_fd()), MountFlags::BIND | flags, c"")?)
}

/// The flags that the mount `own` must get; `None` if it has them. Pure.
fn new_flags(home: &Mount, own: &Mount) -> Option<MountFlags> {
    let has = |mount: &Mount, name: &str| mount.flags.split(',').any(|f| f == name);
    let lacks = FLAGS.iter().any(|(name, copied, _)| *copied && has(home, name) && !has(own, name));
    let flags = FLAGS.iter().filter(|(name, copied, _)| has(own, name) || *copied && has(home, name));
    lacks.then(|| flags.map(|(_, _, flag)| *flag).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_restrictions_are_added_and_nothing_else_changes() {
        let mount = |flags: &str| {
            mountinfo::parse(format!("7 1 0:9 / /srv {flags} - tmpfs none rw\n").as_bytes()).remove(0)
        };
        let of = |home: &str, own: &str| new_flags(&mount(home), &mount(own));
        assert_eq!(of("rw,relatime", "rw,nosuid"), None);
        assert_eq!(of("rw,nosuid,noatime", "rw,nosuid,relatime"), None);
        let all = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::RELATIME;
        assert_eq!(of("rw,nosuid,noatime", "rw,nodev,relatime"), Some(all));
        assert_eq!(of("ro", "rw"), Some(MountFlags::RDONLY));
    }
}
