//! Makes our mount in other mount namespaces as strict as what it covers there.
//!
//! A mount that comes has the flags that it has here, also in a sandbox that shows everything read-only. Only a process in that namespace
//! can change them there (mount(2), `MS_REMOUNT | MS_BIND`), so this one enters it. It must have one thread (setns(2)).

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::mount::{MountFlags, mount_remount};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::views::Loose;

/// Restricts each mount, and comes back to this namespace.
///
/// # Errors
/// With the kernel's answer for the first that stays as it is; those after it stay, too.
pub(super) fn restrict(loose: &[Loose]) -> io::Result<()> {
    if loose.is_empty() {
        return Ok(());
    }
    let home = File::open("/proc/self/ns/mnt")?;
    // The namespaces are opened first: the others may have no /proc.
    let spaces: Vec<File> =
        loose.iter().map(|l| File::open(format!("/proc/{}/ns/mnt", l.pid))).collect::<io::Result<_>>()?;
    let done = spaces.iter().zip(loose).try_for_each(|(space, loose)| in_its_namespace(space, loose));
    enter(&home)?;
    done
}

fn in_its_namespace(space: &File, loose: &Loose) -> io::Result<()> {
    enter(space)?;
    Ok(mount_remount(&loose.place, MountFlags::BIND | forbidding(&loose.should), c"")?)
}

fn enter(space: impl AsFd) -> io::Result<()> {
    Ok(move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Mount))?)
}

/// The flags of mount(2) for the names of mount(8).
fn forbidding(names: &[&str]) -> MountFlags {
    let flag = |name: &&str| match *name {
        "ro" => MountFlags::RDONLY,
        "nosuid" => MountFlags::NOSUID,
        "nodev" => MountFlags::NODEV,
        "noexec" => MountFlags::NOEXEC,
        "nosymfollow" => MountFlags::NOSYMFOLLOW,
        _ => MountFlags::empty(),
    };
    names.iter().map(flag).collect()
}
