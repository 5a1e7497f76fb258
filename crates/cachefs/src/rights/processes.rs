//! A proc(5) of the worker's own, which shows all processes.
//!
//! The machine's may hide those of other users (`hidepid=` with a `gid=` other than 0, or `hidepid=4`): the worker is in no group, and lacks
//! `CAP_SYS_PTRACE`.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use rustix::process::geteuid;

/// Of the process, as its rights are. It is mounted nowhere, and ends with the process.
static OWN: OnceLock<OwnedFd> = OnceLock::new();

/// Has [`read`] see all processes from now on. A worker without root asks for none.
///
/// # Errors
/// Those of fsopen(2) and fsmount(2): in some containers the kernel permits no mount of proc. [`read`] then uses the machine's. Before Linux
/// 5.8 all mounts of proc have the same options, so what is hidden stays so.
pub fn show_processes() -> io::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let context = fsopen(c"proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let to_read = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let own = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, to_read)?;
    OWN.get_or_init(|| own);
    Ok(())
}

/// A file of a process, such as `status`. `None`: the kernel does not show it.
pub(super) fn read(pid: u32, what: &str) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let opened = match OWN.get() {
        Some(own) => openat(own, format!("{pid}/{what}"), flags, Mode::empty()),
        None => openat(CWD, format!("/proc/{pid}/{what}"), flags, Mode::empty()),
    };
    io::read_to_string(File::from(opened.ok()?)).ok()
}
