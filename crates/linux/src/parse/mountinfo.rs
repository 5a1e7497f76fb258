//! `/proc/PID/mountinfo` (proc_pid_mountinfo(5)):
//! `ID PARENT MAJOR:MINOR ROOT PLACE OPTIONS [OPTIONAL...] - TYPE SOURCE SUPER_OPTIONS`.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::escape::unescape;

/// A mount. Paths keep the kernel's bytes; in other fields, bytes that are not UTF-8 become U+FFFD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The mount id, as in `/proc/PID/fdinfo`.
    pub id: u64,
    /// The id of the mount that it is mounted on.
    pub parent: u64,
    /// Device number of the file system, `MAJOR:MINOR`.
    pub device: String,
    /// The directory of the file system that is mounted.
    pub top: PathBuf,
    /// The mount point.
    pub place: PathBuf,
    /// The mount's own options (`rw,nosuid,...`), not those of the file system.
    pub flags: String,
    /// The peer group that it propagates to and from (`shared:N`).
    pub peers: Option<u64>,
    /// The peer group that it follows (`master:N`).
    pub master: Option<u64>,
    /// The type of the file system.
    pub kind: String,
    /// The source: a device, a directory or any word, depending on the type.
    pub source: PathBuf,
    /// The file system's own options, not those of the mount.
    pub options: String,
}

impl Mount {
    /// Whether the file system has this option.
    pub fn has_option(&self, option: &str) -> bool {
        self.options.split(',').any(|o| o == option)
    }
}

/// The mounts in the kernel's order, which is the order of mounting. Skips malformed lines.
pub fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|b| *b == b'\n').filter_map(line).collect()
}

/// The mount that a path is on: the deepest mount point above the path, and of mounts stacked there the last, which
/// covers the others. Symbolic links are not followed, because nothing is opened.
pub fn mount_of<'a>(path: &Path, mounts: &'a [Mount]) -> Option<&'a Mount> {
    // Normalize once, then compare bytes: a caller may check each file of a program against a hundred mounts.
    let plain: PathBuf = path.components().collect();
    let path = plain.as_os_str().as_bytes();
    let over = mounts.iter().filter(|mount| is_below(path, mount.place.as_os_str().as_bytes()));
    // Of mount points above the same path, the longest is the deepest.
    over.max_by_key(|mount| mount.place.as_os_str().len())
}

fn is_below(path: &[u8], place: &[u8]) -> bool {
    let rest = path.strip_prefix(place);
    rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || place.ends_with(b"/"))
}

fn line(line: &[u8]) -> Option<Mount> {
    let fields: Vec<&[u8]> = line.split(|b| *b == b' ').collect();
    let dash = fields.iter().position(|f| *f == b"-")?;
    let (mount, file_system) = (fields.get(..dash)?, fields.get(dash + 1..)?);
    let [id, parent, device, top, place, flags, tags @ ..] = mount else { return None };
    let group = |tag: &[u8]| tags.iter().find_map(|field| number(field.strip_prefix(tag)?));
    let [kind, source, options, ..] = file_system else { return None };
    Some(Mount {
        id: number(id)?,
        parent: number(parent)?,
        device: text(device),
        top: path(top),
        place: path(place),
        flags: text(flags),
        peers: group(b"shared:"),
        master: group(b"master:"),
        kind: text(kind),
        source: path(source),
        options: text(options),
    })
}

fn number(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(field).into_owned()
}

fn path(field: &[u8]) -> PathBuf {
    OsString::from_vec(unescape(field)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"\
22 28 0:21 / /sys rw,nosuid shared:7 master:1 - sysfs sysfs rw
31 27 0:40 /sub\\040dir /mnt\xff rw - nfs4 server:/x rw,vers=4.2
55 28
garbage - ext4 x
x 28 0:21 / /sys rw - sysfs sysfs rw
";

    #[test]
    fn mounts_are_read_with_any_names() {
        let mounts = parse(TEXT);
        assert_eq!(mounts.iter().map(|m| m.id).collect::<Vec<_>>(), [22, 31]);
        assert_eq!((mounts[0].kind.as_str(), mounts[0].device.as_str()), ("sysfs", "0:21"));
        assert_eq!(mounts[1].top, PathBuf::from("/sub dir"));
        assert_eq!(mounts[1].place.as_os_str().as_encoded_bytes(), b"/mnt\xff");
        assert_eq!(mounts[1].source, PathBuf::from("server:/x"));
        assert_eq!((mounts[0].parent, mounts[0].flags.as_str()), (28, "rw,nosuid"));
        let groups = |mount: &Mount| (mount.peers, mount.master);
        assert_eq!((groups(&mounts[0]), groups(&mounts[1])), ((Some(7), Some(1)), (None, None)));
        assert!(mounts[1].has_option("vers=4.2") && !mounts[1].has_option("vers"));
    }

    #[test]
    fn the_mount_that_covers_others_has_the_path() {
        let text = "1 0 8:0 / / rw - ext4 /dev/a rw\n2 1 8:1 / /usr rw - ext4 /dev/b rw\n\
            3 2 8:2 / /usr rw - ext4 /dev/c rw\n4 1 8:3 / /usrx rw - ext4 /dev/d rw\n";
        let mounts = parse(text.as_bytes());
        let id = |path: &str| mount_of(Path::new(path), &mounts).map(|mount| mount.id);
        assert_eq!(
            [id("/usr/bin/x"), id("/usrx"), id("/etc"), id("/usr")],
            [Some(3), Some(4), Some(1), Some(3)]
        );
        assert_eq!(mount_of(Path::new("relative"), &mounts), None);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_mounts_or_none(text in proptest::collection::vec(0u8.., 0..200)) {
            let _ = parse(&text);
        }
    }
}
