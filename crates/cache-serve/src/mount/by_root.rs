//! Mounts by mount(2), as root.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use eke_cache_mounts::at;
use eke_cache_mounts::mounts::TYPE;
use eke_cache_mounts::settings::Settings;
use rustix::fs::StatVfsMountFlags;
use rustix::io::Errno;
use rustix::mount::MountFlags;

use super::{Checked, Error, MAX_READ};
use crate::device;

pub(super) fn mount(settings: &Settings, checked: &Checked) -> Result<OwnedFd, Error> {
    let device = open()?;
    let options = format!(
        "fd={},rootmode={:o},user_id=0,group_id=0,default_permissions,max_read={MAX_READ}{}",
        device.as_raw_fd(),
        checked.mode & libc::S_IFMT,
        if settings.others { ",allow_other" } else { "" },
    );
    let source = CString::new(settings.dir.as_os_str().as_bytes()).unwrap_or_default();
    let options = CString::new(options).unwrap_or_default();
    let flags = flags(checked.flags);
    // This path leads to the directory that was checked; the directory's own path may lead elsewhere by now.
    rustix::mount::mount(&source, at::link(checked.at.as_fd()), TYPE, flags, options.as_c_str())
        .map_err(|e| refused(checked, e))?;
    Ok(device)
}

/// Opens `/dev/fuse`.
pub(super) fn open() -> Result<OwnedFd, Error> {
    device::open().map_err(|source| match Errno::from_io_error(&source) {
        Some(Errno::PERM | Errno::ACCESS) => Error::FuseForbidden { source },
        _ => Error::NoFuse { source },
    })
}

fn refused(checked: &Checked, errno: Errno) -> Error {
    let place = checked.place.clone();
    match errno {
        Errno::PERM | Errno::ACCESS => Error::NotPermitted { place, source: errno.into() },
        Errno::NODEV => Error::NoFuse { source: errno.into() },
        other => Error::Refused { place, source: other.into() },
    }
}

/// `ST_NOSYMFOLLOW` of `include/linux/statfs.h` (Linux 5.10), which rustix lacks.
const NOSYMFOLLOW: StatVfsMountFlags = StatVfsMountFlags::from_bits_retain(0x2000);

/// The flags of the backing file system's mount, so that the mount permits the same: set-user-ID programs, devices, writes.
fn flags(backing: StatVfsMountFlags) -> MountFlags {
    let pairs = [
        (StatVfsMountFlags::RDONLY, MountFlags::RDONLY),
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (NOSYMFOLLOW, MountFlags::NOSYMFOLLOW),
    ];
    pairs.iter().filter(|(has, _)| backing.contains(*has)).map(|(_, flag)| *flag).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_forbids_what_the_backing_file_system_forbids() {
        let backing = StatVfsMountFlags::NOSUID | StatVfsMountFlags::RDONLY | StatVfsMountFlags::RELATIME;
        assert_eq!(flags(backing), MountFlags::NOSUID | MountFlags::RDONLY);
        assert_eq!(flags(NOSYMFOLLOW), MountFlags::NOSYMFOLLOW);
        assert_eq!(flags(StatVfsMountFlags::empty()), MountFlags::empty());
    }
}
