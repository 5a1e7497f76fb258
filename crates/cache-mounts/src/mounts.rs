//! The mounts of `eke-cache` in the kernel's list (`/proc/self/mountinfo`, proc_pid_mountinfo(5)).

use std::io;
use std::path::{Path, PathBuf};

pub use eke_linux::device::Device;
use eke_linux::parse::mountinfo;

/// Their type in that list.
pub const TYPE: &str = "fuse.eke-cache";

/// Root's mounts that stand aside have their mount points here, each named as its socket.
pub const ASIDE: &str = "/run/eke/caches/aside";

/// A mount of `eke-cache`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The kernel's number of the mount, as in `/proc/PID/fdinfo`.
    pub id: u64,
    /// The file system's number.
    pub device: Device,
    /// Where its user has mounted it: its mount point, unless it stands aside.
    pub place: PathBuf,
    /// Its mount point while it stands aside: out of the directory tree that it serves.
    pub aside: Option<PathBuf>,
    /// The backing directory: the mount's source.
    pub dir: PathBuf,
    /// The user who mounted it (`user_id`).
    pub uid: u32,
}

impl Mount {
    /// Where it is in the directory tree.
    pub fn point(&self) -> &Path {
        self.aside.as_deref().unwrap_or(&self.place)
    }

    /// True if it is the same mount, wherever it is now: a directory above it may have been renamed. The kernel reuses the numbers of a
    /// mount that is gone, so all of the rest must be the same.
    pub fn is(&self, other: &Self) -> bool {
        (self.id, self.device, &self.dir, self.uid) == (other.id, other.device, &other.dir, other.uid)
    }
}

/// Where a mount of this file system stands aside.
pub fn aside(device: Device) -> PathBuf {
    Path::new(ASIDE).join(format!("{}-{}", device.major, device.minor))
}

/// The mounts of `eke-cache` in the text of a mountinfo file, in the order of mounting. Malformed lines are left out.
pub fn parse(text: &[u8]) -> Vec<Mount> {
    mountinfo::parse(text).into_iter().filter(|mount| mount.kind == TYPE).filter_map(of_eke_cache).collect()
}

/// The mounts of `eke-cache` that this process sees.
///
/// # Errors
/// The file cannot be read.
pub fn read() -> io::Result<Vec<Mount>> {
    Ok(parse(&std::fs::read("/proc/self/mountinfo")?))
}

/// The topmost mount at this path, which must be as the kernel writes it: absolute, without links.
pub fn at<'a>(mounts: &'a [Mount], place: &Path) -> Option<&'a Mount> {
    mounts.iter().rev().find(|m| m.place == place)
}

fn of_eke_cache(mount: mountinfo::Mount) -> Option<Mount> {
    let device = mount.device.parse().ok()?;
    let uid = mount.options.split(',').find_map(|o| o.strip_prefix("user_id="))?.parse().ok()?;
    // Only mounts over their own directory stand aside, and only root's.
    let aside = (uid == 0 && mount.place == aside(device)).then(|| mount.place.clone());
    let place = if aside.is_some() { mount.source.clone() } else { mount.place };
    Some(Mount { id: mount.id, device, place, aside, dir: mount.source, uid })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"\
22 28 0:21 / /sys rw,nosuid shared:7 - sysfs sysfs rw
51 28 0:57 / /srv/a\\040b rw,nosuid,nodev,relatime shared:9 master:1 - fuse.eke-cache /srv/a\\040b rw,user_id=1000,group_id=1000
52 28 0:58 / /mnt\xff rw - fuse.eke-cache /srv\\134x rw,user_id=0,group_id=0,allow_other
53 28 0:59 / /srv/a\\040b rw - fuse.eke-cache /other rw,user_id=0,group_id=0
54 28 0:60 / /home rw - fuse.sshfs host: rw,user_id=0
55 28
garbage - fuse.eke-cache x
";

    #[test]
    fn mounts_with_any_names_are_parsed() {
        let mounts = parse(TEXT);
        assert_eq!(mounts.len(), 3);
        assert_eq!(
            mounts[0],
            Mount {
                id: 51,
                device: Device { major: 0, minor: 57 },
                place: "/srv/a b".into(),
                aside: None,
                dir: "/srv/a b".into(),
                uid: 1000
            }
        );
        assert_eq!(mounts[1].place.as_os_str().as_encoded_bytes(), b"/mnt\xff");
        assert_eq!(mounts[1].dir, Path::new("/srv\\x"));
    }

    #[test]
    fn a_mount_that_stands_aside_is_found_at_its_directory() {
        let text = |uid: u32| {
            format!("70 28 0:57 / /run/eke/caches/aside/0-57 rw - fuse.eke-cache /srv rw,user_id={uid}\n")
        };
        let all = parse(text(0).as_bytes());
        let found = at(&all, Path::new("/srv")).unwrap();
        assert_eq!(found.point(), Path::new("/run/eke/caches/aside/0-57"));
        let others = parse(text(1000).as_bytes());
        assert_eq!(at(&others, Path::new("/srv")), None, "another user's claims nothing");
    }

    #[test]
    fn the_topmost_mount_counts() {
        let mounts = parse(TEXT);
        assert_eq!(at(&mounts, Path::new("/srv/a b")).map(|m| m.id), Some(53));
        assert_eq!(at(&mounts, Path::new("/srv")), None);
    }
}
