//! Mounts by mount(2), as root.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use eke_cache_mounts::at;
use eke_cache_mounts::mounts::TYPE;
use eke_cache_mounts::settings::Settings;
use eke_linux::Root;
use rustix::fs::{StatVfsMountFlags, getxattr};
use rustix::io::Errno;
use rustix::mount::MountFlags;

use super::{Checked, Error, MAX_READ};
use crate::device;
use crate::log::log_line;

pub(super) fn mount(settings: &Settings, checked: &Checked) -> Result<OwnedFd, Error> {
    let device = open()?;
    let options = format!(
        "fd={},rootmode={:o},user_id=0,group_id=0,default_permissions,max_read={MAX_READ}{}",
        device.as_raw_fd(),
        checked.mode & libc::S_IFMT,
        if settings.others { ",allow_other" } else { "" },
    );
    let source = CString::new(settings.dir.as_os_str().as_bytes()).unwrap_or_default();
    let mount = |options: &str| {
        let options = CString::new(options).unwrap_or_default();
        // This path leads to the directory that was checked; the directory's own path may lead elsewhere by now.
        let place = at::link(checked.at.as_fd());
        rustix::mount::mount(&source, place, TYPE, flags(checked.flags), options.as_c_str())
    };
    let label = label(&Root::host(), checked.dir.as_fd()).map(|label| context(&label)).unwrap_or_default();
    let mounted = match mount(&format!("{options}{label}")) {
        // The label of another machine's policy, or in a container.
        Err(e @ (Errno::INVAL | Errno::ACCESS | Errno::PERM)) if !label.is_empty() => {
            log_line(&format!("the mount has no SELinux label: the kernel refuses {}: {e}", &label[1..]));
            mount(&options)
        }
        mounted => mounted,
    };
    mounted.map_err(|e| refused(checked, e))?;
    Ok(device)
}

/// The directory's SELinux label, where SELinux is on. Without it all files would have that of FUSE (`fusefs_t`), which a web server may
/// not read, for example. Labels have at most a page.
fn label(root: &Root, dir: BorrowedFd<'_>) -> Option<String> {
    if !root.exists("sys/fs/selinux/enforce") {
        return None;
    }
    let mut label = vec![0; 4096];
    let len = getxattr(at::link(dir), "security.selinux", &mut label).ok()?;
    label.truncate(len);
    String::from_utf8(label).ok()
}

/// The mount option that gives all files this label (mount(8), `context`). Categories have commas, so it is quoted.
fn context(label: &str) -> String {
    let label = label.trim_end_matches('\0');
    if label.is_empty() || label.contains('"') { String::new() } else { format!(",context=\"{label}\"") }
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
    fn a_label_is_quoted_because_of_its_commas() {
        let label = "system_u:object_r:httpd_sys_content_t:s0:c1,c2\0";
        assert_eq!(context(label), ",context=\"system_u:object_r:httpd_sys_content_t:s0:c1,c2\"");
        assert_eq!(["", "\0", "a\",fd=0,b\""].map(context), [""; 3]);
    }

    #[test]
    fn without_selinux_there_is_no_label() {
        let dir = tempfile::tempdir().unwrap();
        let file = std::fs::File::open(dir.path()).unwrap();
        assert_eq!(label(&Root::at(dir.path()), file.as_fd()), None);
    }

    #[test]
    fn the_mount_forbids_what_the_backing_file_system_forbids() {
        let backing = StatVfsMountFlags::NOSUID | StatVfsMountFlags::RDONLY | StatVfsMountFlags::RELATIME;
        assert_eq!(flags(backing), MountFlags::NOSUID | MountFlags::RDONLY);
        assert_eq!(flags(NOSYMFOLLOW), MountFlags::NOSYMFOLLOW);
        assert_eq!(flags(StatVfsMountFlags::empty()), MountFlags::empty());
    }
}
