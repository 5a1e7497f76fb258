//! `/proc/PID/maps` and `/proc/PID/pagemap` (proc(5), Documentation/admin-guide/mm/pagemap.rst): which pages of files a process has.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use eke_linux::parse::escape::unescape;

use super::places::Device;
use eke_prefetch_model::pages::MachineSpan;

/// A file in a process's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Its first address.
    pub start: u64,
    /// The address after its last.
    pub end: u64,
    /// Where in the file it begins, in bytes.
    pub offset: u64,
    /// The file system.
    pub device: Device,
    /// The file.
    pub ino: u64,
    /// Where the file is, as the kernel shows it to the reader: a newline and nothing else is escaped.
    pub path: PathBuf,
    /// Was it deleted? A file whose name ends so is taken for one.
    pub is_deleted: bool,
}

/// The files in `/proc/PID/maps`; what is no file, and lines that make no sense, are left out.
pub fn parse(text: &[u8]) -> Vec<Mapping> {
    text.split(|b| *b == b'\n').filter_map(line).collect()
}

/// `START-END FLAGS OFFSET MAJOR:MINOR INODE    PATH`, hexadecimal but for the inode.
fn line(line: &[u8]) -> Option<Mapping> {
    let mut fields = line.splitn(6, |b| *b == b' ');
    let mut field = || std::str::from_utf8(fields.next()?).ok();
    let (start, end) = field()?.split_once('-')?;
    let _flags = field()?;
    let (offset, device, ino) = (field()?, field()?, field()?.parse().ok().filter(|ino| *ino != 0)?);
    let path = unescape(fields.next()?.trim_ascii_start());
    let (path, is_deleted) = match path.strip_suffix(b" (deleted)") {
        Some(path) => (path.to_vec(), true),
        None => (path, false),
    };
    let hex = |text| u64::from_str_radix(text, 16).ok();
    path.starts_with(b"/").then_some(())?;
    Some(Mapping {
        start: hex(start)?,
        end: hex(end)?,
        offset: hex(offset)?,
        device: Device::parse(device, 16)?,
        ino,
        path: OsString::from_vec(path).into(),
        is_deleted,
    })
}

/// In memory (bit 63) or swapped (62), as a page of a private mapping that was written to: it was read from the file before.
const HELD: u64 = 0b11 << 62;

/// The pages of the machine that the process has, of entries of `/proc/PID/pagemap`, eight bytes each; the first entry is of page `first`.
pub fn held(entries: &[u8], first: u64) -> Vec<MachineSpan> {
    let is_held = |entry: &[u8]| entry.try_into().is_ok_and(|bytes| u64::from_ne_bytes(bytes) & HELD != 0);
    let mut spans: Vec<MachineSpan> = Vec::new();
    for page in
        (first..).zip(entries.chunks_exact(8)).filter(|(_, entry)| is_held(entry)).map(|(page, _)| page)
    {
        match spans.last_mut().filter(|span| span.end == page) {
            Some(span) => span.end += 1,
            None => spans.extend(MachineSpan::new(page, page.saturating_add(1))),
        }
    }
    spans
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
7f20-7f30 r-xp 00000000 fe:01 9 /tmp/x\\012\xff (deleted)
7f40-7f50 rw-s 00000000 00:01 5 /memfd:x (deleted)
7ffd-7fff rw-p 00000000 00:00 0                          [stack]
nonsense
";
        let found = parse(text);
        assert_eq!(found.len(), 3);
        let first = &found[0];
        assert_eq!((first.start, first.end, first.offset, first.ino), (0x55d0, 0x55f0, 0x1000, 1234));
        assert_eq!((first.device, first.is_deleted), (Device { major: 0xfe, minor: 1 }, false));
        assert_eq!(first.path, PathBuf::from("/usr/bin/a b"));
        assert_eq!((found[1].path.as_os_str().as_bytes(), found[1].is_deleted), (&b"/tmp/x\n\xff"[..], true));
    }

    #[test]
    fn pages_are_those_in_memory_or_swapped() {
        let entries = [1u64 << 63, 1 << 62, 0, 1 << 61, 1 << 63 | 5];
        let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_ne_bytes()).collect();
        assert_eq!(
            held(&bytes, 10),
            [MachineSpan { first: 10, end: 12 }, MachineSpan { first: 14, end: 15 }]
        );
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_mappings_or_none(text in proptest::collection::vec(0u8.., 0..200)) {
            let _ = parse(&text);
            let _ = held(&text, 0);
        }
    }
}
