//! `/proc/PID/maps` (proc_pid_maps(5)): the files mapped by a process.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::escape::unescape;
use crate::device::Device;

/// A mapped file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Its first address.
    pub start: u64,
    /// The address after its last.
    pub end: u64,
    /// Whether the process may write to it.
    pub is_writable: bool,
    /// Whether the process may execute it.
    pub is_executable: bool,
    /// Whether writes are shared with other processes.
    pub is_shared: bool,
    /// Offset of the mapping in the file, in bytes.
    pub offset: u64,
    /// The number of the file system.
    pub device: Device,
    /// Inode number.
    pub ino: u64,
    /// The path as the kernel shows it to the reader. The kernel escapes only newlines.
    pub path: PathBuf,
    /// Whether the file was deleted. A file whose name ends in ` (deleted)` counts as deleted.
    pub is_deleted: bool,
}

/// The mapped files. Skips other memory and malformed lines.
pub fn parse(text: &[u8]) -> Vec<Mapping> {
    text.split(|b| *b == b'\n').filter_map(line).collect()
}

/// `START-END MODE OFFSET MAJOR:MINOR INODE    PATH`; all numbers but the inode are hexadecimal.
fn line(line: &[u8]) -> Option<Mapping> {
    let mut fields = line.splitn(6, |b| *b == b' ');
    let mut field = || std::str::from_utf8(fields.next()?).ok();
    let (start, end) = field()?.split_once('-')?;
    let mode = field()?.as_bytes();
    let (offset, device, ino) = (field()?, field()?, field()?.parse().ok().filter(|ino| *ino != 0)?);
    let path = unescape(fields.next()?.trim_ascii_start());
    let (path, is_deleted) = match path.strip_suffix(b" (deleted)") {
        Some(path) => (path.to_vec(), true),
        None => (path, false),
    };
    path.starts_with(b"/").then_some(())?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let (start, end) = (hex(start)?, hex(end)?);
    (start <= end).then_some(())?;
    Some(Mapping {
        start,
        end,
        is_writable: mode.get(1) == Some(&b'w'),
        is_executable: mode.get(2) == Some(&b'x'),
        is_shared: mode.get(3) == Some(&b's'),
        offset: hex(offset)?,
        device: Device::parse(device, 16).ok()?,
        ino,
        path: OsString::from_vec(path).into(),
        is_deleted,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn files_are_found_among_mappings() {
        let text = b"\
55d0-55f0 r--p 00001000 fe:01 1234                       /usr/bin/a b
7f00-7f10 rw-p 00000000 00:00 0
7f20-7f30 rw-s 00000000 fe:1a 9 /tmp/x\\012\xff (deleted)
7f40-7f50 rw-s 00000000 00:01 5 /memfd:x (deleted)
7ffd-7fff rw-p 00000000 00:00 0                          [stack]
nonsense
";
        let found = parse(text);
        assert_eq!(found.len(), 3);
        let first = &found[0];
        assert_eq!((first.start, first.end, first.offset, first.ino), (0x55d0, 0x55f0, 0x1000, 1234));
        assert_eq!(
            (first.device, first.is_deleted, first.is_writable),
            (Device { major: 0xfe, minor: 1 }, false, false)
        );
        assert_eq!(first.path, PathBuf::from("/usr/bin/a b"));
        let second = &found[1];
        assert_eq!((second.path.as_os_str().as_bytes(), second.is_deleted), (&b"/tmp/x\n\xff"[..], true));
        assert!(second.is_writable && second.is_shared);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_mappings_or_none(text in proptest::collection::vec(0u8.., 0..200)) {
            let _ = parse(&text);
        }
    }
}
