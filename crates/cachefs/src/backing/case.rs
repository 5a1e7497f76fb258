//! Directories where several spellings of a name lead to the same file.
//!
//! The kernel holds each spelling as a name of its own, and is told of the one that changed.

use std::io;
use std::os::fd::AsFd;

use eke_linux::magic;
use rustix::fs::{OFlags, fstatfs, ioctl_getflags};
use rustix::io::Errno;
use rustix::ioctl::{Getter, ioctl, opcode};

use super::at;

/// `FS_CASEFOLD_FL` (include/uapi/linux/fs.h).
const CASEFOLD: u32 = 0x4000_0000;
/// They have that flag: for each directory.
const WITH_FLAG: [u32; 3] = [magic::EXT, magic::F2FS, magic::TMPFS];
/// `struct xfs_fsop_geom_v1` (fs/xfs/libxfs/xfs_fs.h), and where its `flags` are, in words.
type Geometry = [u32; 28];
const FLAGS: usize = 23;
/// `XFS_FSOP_GEOM_FLAGS_DIRV2CI`: `mkfs.xfs -n version=ci`.
const ASCII_CASE: u32 = 1 << 13;
/// `XFS_IOC_FSGEOMETRY_V1`.
const GEOMETRY: rustix::ioctl::Opcode = opcode::read::<Geometry>(b'X', 100);

/// True if directories on this file system may ignore case. It is none of those that always do: their names are never held for long.
pub fn may_ignore_case(dir: impl AsFd) -> bool {
    magic_of(dir).is_some_and(|kind| kind == magic::XFS || WITH_FLAG.contains(&kind))
}

/// The answers of a file system that has no such directories.
const LACKS: [Errno; 4] = [Errno::NOTTY, Errno::OPNOTSUPP, Errno::NOSYS, Errno::INVAL];

/// True if this directory ignores case. `None`: it could not be asked, as without a free descriptor.
pub fn ignores_case(dir: impl AsFd) -> Option<bool> {
    let asked = match magic_of(&dir)? {
        kind if WITH_FLAG.contains(&kind) => has_flag(dir),
        magic::XFS => is_of_ascii(dir),
        _ => return Some(false),
    };
    match asked {
        Ok(ignores) => Some(ignores),
        Err(e) => Errno::from_io_error(&e).is_some_and(|errno| LACKS.contains(&errno)).then_some(false),
    }
}

fn magic_of(dir: impl AsFd) -> Option<u32> {
    Some(fstatfs(dir).ok()?.f_type as u32)
}

fn has_flag(dir: impl AsFd) -> io::Result<bool> {
    let dir = at::reopen(dir.as_fd(), OFlags::RDONLY | OFlags::DIRECTORY)?;
    Ok(ioctl_getflags(dir)?.bits() & CASEFOLD != 0)
}

#[expect(unsafe_code, reason = "rustix has no ioctl(2) of XFS")]
fn is_of_ascii(dir: impl AsFd) -> io::Result<bool> {
    let dir = at::reopen(dir.as_fd(), OFlags::RDONLY | OFlags::DIRECTORY)?;
    // SAFETY: the number has the size of this structure, and XFS writes no more.
    let geometry = unsafe { ioctl(dir, Getter::<GEOMETRY, Geometry>::new()) }?;
    Ok(is_ascii_case(&geometry))
}

fn is_ascii_case(geometry: &Geometry) -> bool {
    geometry[FLAGS] & ASCII_CASE != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_of_xfs_is_behind_the_version() {
        let mut geometry: Geometry = [u32::MAX; 28];
        assert!(is_ascii_case(&geometry));
        // Eight words, four double ones, the identity, stripes, the version.
        geometry[8 + 8 + 4 + 2 + 1] = !ASCII_CASE;
        assert!(!is_ascii_case(&geometry));
        assert_eq!(size_of::<Geometry>(), 112);
    }

    #[test]
    fn a_usual_directory_tells_names_apart() {
        let dir = tempfile::tempdir().unwrap();
        let opened = rustix::fs::open(dir.path(), OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
        assert_eq!(ignores_case(&opened), Some(false));
    }
}
