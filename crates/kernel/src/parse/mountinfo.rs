//! `/proc/PID/mountinfo` (proc_pid_mountinfo(5)):
//! `ID PARENT MAJOR:MINOR ROOT PLACE OPTIONS [OPTIONAL...] - TYPE SOURCE SUPER_OPTIONS`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::escape::unescape;

/// A mount. Paths are as the kernel has them, any bytes; other bytes that are not UTF-8 become U+FFFD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The kernel's number of the mount, as in `/proc/PID/fdinfo`.
    pub id: u64,
    /// The file system's number, `MAJOR:MINOR`.
    pub device: String,
    /// The part of the file system that is mounted.
    pub top: PathBuf,
    /// Where it is.
    pub place: PathBuf,
    /// The type of the file system.
    pub kind: String,
    /// What the type takes it from: a device, a directory, any word.
    pub source: PathBuf,
    /// The file system's own options, not those of the mount.
    pub options: String,
}

impl Mount {
    /// Is this one of the file system's options?
    pub fn has_option(&self, option: &str) -> bool {
        self.options.split(',').any(|o| o == option)
    }
}

/// The mounts in the kernel's order, which is that of mounting; lines that make no sense are left out.
pub fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|b| *b == b'\n').filter_map(line).collect()
}

fn line(line: &[u8]) -> Option<Mount> {
    let fields: Vec<&[u8]> = line.split(|b| *b == b' ').collect();
    let dash = fields.iter().position(|f| *f == b"-")?;
    let (mount, file_system) = (fields.get(..dash)?, fields.get(dash + 1..)?);
    let [id, _, device, top, place, ..] = mount else { return None };
    let [kind, source, options, ..] = file_system else { return None };
    Some(Mount {
        id: std::str::from_utf8(id).ok()?.parse().ok()?,
        device: text(device),
        top: path(top),
        place: path(place),
        kind: text(kind),
        source: path(source),
        options: text(options),
    })
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
        assert!(mounts[1].has_option("vers=4.2") && !mounts[1].has_option("vers"));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_mounts_or_none(text in proptest::collection::vec(0u8.., 0..200)) {
            let _ = parse(&text);
        }
    }
}
