//! `/proc/self/mountinfo` (proc_pid_mountinfo(5)). Pure.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Its number, unique while it is there.
    pub id: u64,
    /// `MAJOR:MINOR` of `st_dev`.
    pub device: String,
    /// Where, without symbolic links.
    pub place: PathBuf,
    /// The type of the file system.
    pub fstype: String,
}

/// All of them, in the order in which they cover each other.
pub fn parse(mountinfo: &str) -> Vec<Mount> {
    mountinfo.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<Mount> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut fields = mount.split(' ');
    let id = fields.next()?.parse().ok()?;
    let device = fields.nth(1)?.to_owned();
    let place = unescaped(fields.nth(1)?);
    let fstype = file_system.split(' ').next()?.to_owned();
    Some(Mount { id, device, place, fstype })
}

/// The mount that shows at `place`: the last one there.
pub fn at<'m>(mounts: &'m [Mount], place: &Path) -> Option<&'m Mount> {
    mounts.iter().rev().find(|m| m.place == place)
}

/// The mount with this number.
pub fn by_id(mounts: &[Mount], id: u64) -> Option<&Mount> {
    mounts.iter().find(|m| m.id == id)
}

/// Blank, tab, newline and backslash stand there as `\` and three octal digits.
fn unescaped(field: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = field.as_bytes();
    while let Some((&first, others)) = rest.split_first() {
        let code = rest.get(1..4).filter(|_| first == b'\\').and_then(octal);
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &rest[4..] } else { others };
    }
    OsString::from_vec(bytes).into()
}

fn octal(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
        90 22 0:45 / /a\\040b rw,nosuid - fuse.eke-cache /a\\040b rw,user_id=0\n\
        91 22 0:46 / /a\\040b rw,nosuid master:3 propagate_from:2 - tmpfs none rw\nnot a line\n9 - x\n";

    #[test]
    fn the_last_mount_at_a_place_shows() {
        let mounts = parse(TEXT);
        assert_eq!(mounts.len(), 3);
        let top = at(&mounts, Path::new("/a b")).unwrap();
        assert_eq!((top.id, top.fstype.as_str(), top.device.as_str()), (91, "tmpfs", "0:46"));
        assert_eq!(by_id(&mounts, 90).unwrap().fstype, "fuse.eke-cache");
        assert_eq!(at(&mounts, Path::new("/a")), None);
    }
}
