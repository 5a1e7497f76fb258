//! The files that a process has mapped. Pure.

use std::collections::BTreeSet;

use eke_linux::device::Device;
use eke_linux::parse::maps::{self, Mapping};

/// A line of `/proc/PID/maps` with a file, as preload and its thesis count: path, offset, length.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Map {
    /// The file.
    pub path: String,
    /// Its offset in the file, in bytes.
    pub offset: u64,
    /// Its length in memory, in bytes.
    pub length: u64,
}

/// The maps of one process, without those of devices, of deleted files, and without a file.
pub fn parse(text: &str) -> impl Iterator<Item = Map> {
    maps::parse(text.as_bytes()).into_iter().filter_map(of)
}

fn of(mapping: Mapping) -> Option<Map> {
    let is_file = mapping.device != (Device { major: 0, minor: 0 })
        && !mapping.is_deleted
        && !mapping.path.starts_with("/dev");
    let path = mapping.path.into_os_string().into_string().ok()?;
    is_file.then_some(Map { path, offset: mapping.offset, length: mapping.end - mapping.start })
}

/// Their number and bytes. A map that several processes have counts once.
pub fn size(maps: &BTreeSet<Map>) -> (usize, u64) {
    (maps.len(), maps.iter().map(|m| m.length).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
7f0000000000-7f0000028000 r--p 00000000 07:00 1234                       /usr/lib/x86_64-linux-gnu/libc.so.6
7f0000028000-7f000002a000 r-xp 00028000 07:00 1234                       /usr/lib/x86_64-linux-gnu/libc.so.6
7f0000030000-7f0000040000 rw-p 00000000 00:00 0 
7f0000040000-7f0000041000 r--p 00000000 07:00 99                         /tmp/a b
7f0000041000-7f0000042000 r--p 00000000 07:00 98                         /tmp/gone (deleted)
7f0000042000-7f0000043000 rw-s 00000000 00:05 7                          /dev/shm/x
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
nonsense
";

    #[test]
    fn maps_have_files_behind_them_and_count_once() {
        let maps: BTreeSet<Map> = parse(TEXT).chain(parse(TEXT)).collect();
        assert_eq!(size(&maps), (3, 0x28000 + 0x2000 + 0x1000));
        assert!(maps.iter().any(|m| m.path == "/tmp/a b"));
    }
}
