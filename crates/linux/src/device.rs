//! Block devices and file systems by number, and devices by what is on them.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// A device's number. File systems have one, too: unique on the machine while the file system is mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Device {
    /// 0 for a file system that is on no block device.
    pub major: u32,
    /// The minor number.
    pub minor: u32,
}

impl Device {
    /// From `st_dev` or `st_rdev`.
    pub fn of(st_dev: u64) -> Self {
        Self { major: rustix::fs::major(st_dev), minor: rustix::fs::minor(st_dev) }
    }

    /// As in `st_dev` and `st_rdev`.
    pub fn st_dev(self) -> u64 {
        rustix::fs::makedev(self.major, self.minor)
    }

    /// From the kernel's own encoding (`MKDEV` in linux/kdev_t.h).
    pub fn of_kernel(dev: u32) -> Self {
        Self { major: dev >> 20, minor: dev & 0xf_ffff }
    }

    /// In the kernel's own encoding.
    pub fn kernel(self) -> u32 {
        self.major << 20 | self.minor
    }

    /// Parses `MAJOR:MINOR` in this base.
    ///
    /// # Errors
    /// Other text.
    pub fn parse(text: &str, radix: u32) -> Result<Self, ParseIntError> {
        let (major, minor) = text.trim().split_once(':').unwrap_or((text, ""));
        Ok(Self { major: u32::from_str_radix(major, radix)?, minor: u32::from_str_radix(minor, radix)? })
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// `8:1`, as `/proc` and `/sys` write it.
impl FromStr for Device {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text, 10)
    }
}

/// The number of `MAJOR:MINOR`, as in `st_dev`; `None` for other text.
pub fn number(text: &str) -> Option<u64> {
    text.parse().ok().map(Device::st_dev)
}

/// The path of a device as fstab(5) and the kernel's command line name it: udev's link for `UUID=...` and the like.
pub fn path_of(name: &str) -> String {
    match name.split_once('=') {
        Some((tag @ ("UUID" | "LABEL" | "PARTUUID" | "PARTLABEL"), value)) => {
            format!("/dev/disk/by-{}/{}", tag.to_lowercase(), value.trim_matches('"'))
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_back_as_they_are_written() {
        for (text, major, minor) in [("8:1", 8, 1), ("259:65536", 259, 65536), ("0:45", 0, 45)] {
            let device = Device { major, minor };
            assert_eq!((text.parse(), device.to_string().as_str()), (Ok(device), text));
            assert_eq!(Device::of(device.st_dev()), device);
        }
        assert_eq!("8:1\n".parse(), Ok(Device { major: 8, minor: 1 }));
        assert_eq!(Device::parse("fd:1a", 16), Ok(Device { major: 0xfd, minor: 0x1a }));
        assert_eq!(Device::of_kernel(0x0080_0003), Device { major: 8, minor: 3 });
        assert_eq!((Device { major: 8, minor: 3 }).kernel(), 0x0080_0003);
        for wrong in ["", "8", "8:", ":1", "a:b", "8:1:2", "99999999999:1"] {
            assert_eq!(number(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn tags_are_links_of_udev() {
        let paths = ["UUID=a", "PARTLABEL=\"b\"", "/dev/sda1", "HOST=x"].map(path_of);
        assert_eq!(paths, ["/dev/disk/by-uuid/a", "/dev/disk/by-partlabel/b", "/dev/sda1", "HOST=x"]);
    }
}
