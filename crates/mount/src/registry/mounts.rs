//! The kernel's list of mounts (`/proc/self/mountinfo`, proc_pid_mountinfo(5)), those of `eke-cache` in it.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The type that the kernel shows for them.
pub const TYPE: &str = "fuse.eke-cache";

/// A file system's number: `st_dev` of its files, unique among those of the whole machine while one of its mounts lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Device {
    /// 0 for all that lie on no block device.
    pub major: u32,
    /// The number.
    pub minor: u32,
}

impl Device {
    /// Of `st_dev`.
    pub fn of(st_dev: u64) -> Self {
        Self { major: rustix::fs::major(st_dev), minor: rustix::fs::minor(st_dev) }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for Device {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (major, minor) = text.split_once(':').unwrap_or((text, ""));
        Ok(Self { major: major.parse()?, minor: minor.parse()? })
    }
}

/// A mount of `eke-cache`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The kernel's number of the mount, as in `/proc/PID/fdinfo`.
    pub id: u64,
    /// The file system's number.
    pub device: Device,
    /// Where it is.
    pub place: PathBuf,
    /// The directory below, as the source of the mount.
    pub dir: PathBuf,
    /// Whose it is (`user_id`).
    pub uid: u32,
}

/// The mounts of `eke-cache` in the text of a mountinfo file, in the order of mounting; lines that make no sense are left out.
pub fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|b| *b == b'\n').filter_map(line).collect()
}

/// The mounts of `eke-cache` that this process sees.
///
/// # Errors
/// What the kernel answers for the file.
pub fn read() -> io::Result<Vec<Mount>> {
    Ok(parse(&std::fs::read("/proc/self/mountinfo")?))
}

/// The one on top at this place, which is compared as the kernel writes it: absolute, without links.
pub fn at<'a>(mounts: &'a [Mount], place: &Path) -> Option<&'a Mount> {
    mounts.iter().rev().find(|m| m.place == place)
}

/// `ID PARENT MAJOR:MINOR ROOT PLACE OPTIONS [OPTIONAL...] - TYPE SOURCE SUPER_OPTIONS`
fn line(line: &[u8]) -> Option<Mount> {
    let fields: Vec<&[u8]> = line.split(|b| *b == b' ').collect();
    let dash = fields.iter().position(|f| *f == b"-")?;
    let [kind, source, options] = fields.get(dash + 1..dash + 4)? else { return None };
    if *kind != TYPE.as_bytes() {
        return None;
    }
    let text = |i: usize| std::str::from_utf8(fields.get(i)?).ok();
    Some(Mount {
        id: text(0)?.parse().ok()?,
        device: text(2)?.parse().ok()?,
        place: unescaped(fields.get(4)?),
        dir: unescaped(source),
        uid: user_id(options)?,
    })
}

fn user_id(options: &[u8]) -> Option<u32> {
    let options = std::str::from_utf8(options).ok()?;
    options.split(',').find_map(|o| o.strip_prefix("user_id="))?.parse().ok()
}

/// The kernel writes blank, tab, line feed, backslash and `#` as `\` and three octal digits (mangle(), fs/seq_file.c).
fn unescaped(field: &[u8]) -> PathBuf {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        let code = if *first == b'\\' { tail.get(..3).and_then(octal) } else { None };
        out.push(code.unwrap_or(*first));
        rest = if code.is_some() { &tail[3..] } else { tail };
    }
    OsString::from_vec(out).into()
}

fn octal(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
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
    fn mounts_of_eke_cache_are_read_with_any_names() {
        let mounts = parse(TEXT);
        assert_eq!(mounts.len(), 3);
        assert_eq!(
            mounts[0],
            Mount {
                id: 51,
                device: Device { major: 0, minor: 57 },
                place: "/srv/a b".into(),
                dir: "/srv/a b".into(),
                uid: 1000
            }
        );
        assert_eq!(mounts[1].place.as_os_str().as_encoded_bytes(), b"/mnt\xff");
        assert_eq!(mounts[1].dir, Path::new("/srv\\x"));
    }

    #[test]
    fn the_one_on_top_counts() {
        let mounts = parse(TEXT);
        assert_eq!(at(&mounts, Path::new("/srv/a b")).map(|m| m.id), Some(53));
        assert_eq!(at(&mounts, Path::new("/srv")), None);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_mounts_or_none(text in proptest::collection::vec(0u8.., 0..200)) {
            let _ = parse(&text);
        }

        #[test]
        fn a_name_comes_back(name in proptest::collection::vec(1u8.., 1..20)) {
            let mut escaped = Vec::new();
            for byte in &name {
                match byte {
                    b' ' | b'\t' | b'\n' | b'\\' | b'#' => escaped.extend(format!("\\{byte:03o}").bytes()),
                    other => escaped.push(*other),
                }
            }
            let back = unescaped(&escaped);
            proptest::prop_assert_eq!(back.as_os_str().as_encoded_bytes(), &name[..]);
        }
    }
}
