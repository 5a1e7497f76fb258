//! The kernel's side of a FUSE mount.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use eke_apply::write::write_value;
use eke_linux::Root;
use eke_linux::parse::mountinfo;
use rustix::fs::{Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// A FUSE connection by its number, which is that of the mount's device (Documentation/filesystems/fuse.rst, "Control
/// filesystem").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Connection(u32);

impl Connection {
    /// The connection of the mount at `dir`, if any. Does not access the server, which may be dead.
    pub(super) fn of(root: &Root, dir: &Path) -> Option<Self> {
        let mounts = root.read_bytes("proc/self/mountinfo").ok()?;
        let mounts = mountinfo::parse(&mounts);
        let (_, minor) = mounts.iter().rev().find(|mount| mount.place == dir)?.device.split_once(':')?;
        minor.parse().ok().map(Self)
    }

    /// Aborts the connection: all its requests fail, and its server is notified. A mount namespace created while it was
    /// mounted (`ip netns exec`, `unshare`, a container) has a copy of the mount, which would otherwise keep the
    /// connection alive.
    pub(super) fn abort(self, root: &Root) -> io::Result<()> {
        // The control file system may not be mounted.
        write_value(root, "fuse.abort", &self.0.to_string(), "1").or_else(|_| self.abort_unmounted())
    }

    /// Mounts the control file system detached, without a mount point (Linux 5.2).
    fn abort_unmounted(self) -> io::Result<()> {
        let control = fsopen("fusectl", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&control)?;
        let top: OwnedFd = fsmount(&control, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
        let file = rustix::fs::openat(
            &top,
            format!("{}/abort", self.0),
            OFlags::WRONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        rustix::io::write(&file, b"1")?;
        Ok(())
    }
}
