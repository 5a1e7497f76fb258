//! Text and numbers of `/proc/PID/{status,maps,smaps,pagemap}` as data. Takes text, never paths.

use std::ops::Range;

/// The fields of `/proc/PID/status` that sampling needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// The program's name, 15 bytes at most.
    pub name: String,
    /// `RssAnon` in bytes (Linux 4.5); `None` for a kernel thread.
    pub anonymous_bytes: Option<u64>,
    /// `VmLck` in bytes. At 0 nothing is locked, and `smaps` need not be read.
    pub locked_bytes: u64,
}

/// Reads a status file.
pub fn status(text: &str) -> Status {
    let field = |key: &str| text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':')).map(str::trim);
    let kib = |key: &str| {
        field(key)?.split_whitespace().next()?.parse::<u64>().ok().map(|n| n.saturating_mul(1024))
    };
    Status {
        name: field("Name").unwrap_or_default().to_owned(),
        anonymous_bytes: kib("RssAnon"),
        locked_bytes: kib("VmLck").unwrap_or(0),
    }
}

/// Is it one of eke's own programs (`eke`, `eke-agent`, `eke-cache`)?
pub fn is_ours(name: &str) -> bool {
    name == "eke" || name.starts_with("eke-")
}

/// The address ranges of `maps` that can have private anonymous pages: private mappings without executable file text, reserved address space
/// (`---p`), devices, the kernel's own pages (`[vdso]`, `[vvar]`, `[vsyscall]`), and huge pages, which are not swapped.
pub fn private_ranges(maps: &str) -> Vec<Range<u64>> {
    maps.lines().filter_map(private_range).collect()
}

fn private_range(line: &str) -> Option<Range<u64>> {
    let mut words = line.split_ascii_whitespace();
    let range = range(words.next()?)?;
    let permissions = words.next()?.as_bytes();
    let inode = words.nth(2)?;
    let name = words.next().unwrap_or_default();
    let private = permissions.get(3) == Some(&b'p');
    let reserved = permissions.starts_with(b"--");
    let text = permissions.get(1) == Some(&b'-') && permissions.get(2) == Some(&b'x') && inode != "0";
    let special = name.starts_with("[v") || name.starts_with("/anon_hugepage");
    let device = name.starts_with("/dev/") && name != "/dev/zero" && !name.starts_with("/dev/shm/");
    (private && !reserved && !text && !special && !device).then_some(range)
}

fn range(word: &str) -> Option<Range<u64>> {
    let (start, end) = word.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    (start < end).then_some(start..end)
}

/// The ranges of `smaps` whose `VmFlags` (Linux 3.8) have locked (`lo`), huge pages (`ht`), I/O (`io`) or raw frames (`pf`).
pub fn pinned_ranges(smaps: &str) -> Vec<Range<u64>> {
    let mut current = None;
    let mut pinned = Vec::new();
    for line in smaps.lines() {
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            let is_pinned = flags.split_ascii_whitespace().any(|f| matches!(f, "lo" | "ht" | "io" | "pf"));
            pinned.extend(current.take().filter(|_| is_pinned));
        } else if let Some(found) = line.split_ascii_whitespace().next().and_then(range) {
            current = Some(found);
        }
    }
    pinned
}

/// One 64-bit entry of `/proc/PID/pagemap` (Documentation/admin-guide/mm/pagemap.rst).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PagemapEntry(pub u64);

impl PagemapEntry {
    /// Present (bit 63), not swapped (62), neither file page nor shared anonymous (61, Linux 3.5).
    pub fn is_private_anonymous(self) -> bool {
        self.0 >> 61 == 0b100
    }

    /// Mapped by this process alone (bit 56, Linux 4.2). The kernel's shared zero page never is.
    pub fn is_exclusive(self) -> bool {
        self.0 >> 56 & 1 == 1
    }
}

/// The content of a page, by zram's rules (`page_same_filled` in zram_drv.c).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// All bytes 0.
    Zero,
    /// One word repeated.
    SameFilled,
    /// Anything else.
    Mixed,
}

/// Classifies a page.
pub fn content(page: &[u8]) -> Content {
    let (Some(first), true) = (page.get(..8), page.len() % 8 == 0) else { return Content::Mixed };
    match page.chunks_exact(8).all(|word| word == first) {
        true if first == [0; 8] => Content::Zero,
        true => Content::SameFilled,
        false => Content::Mixed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55d0c0a00000-55d0c0a01000 r--p 00000000 fe:00 1234                       /usr/bin/cat
55d0c0a01000-55d0c0a02000 r-xp 00001000 fe:00 1234                       /usr/bin/cat
55d0c0a03000-55d0c0a04000 rw-p 00003000 fe:00 1234                       /usr/bin/cat
55d0c1a00000-55d0c1a21000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000001000 rw-s 00000000 00:05 77                         /dev/dri/card0
7f0000100000-7f0000101000 rw-p 00000000 00:05 78                         /dev/nvidia0
7f0000200000-7f0000400000 rw-p 00000000 00:0f 79                         /anon_hugepage (deleted)
7f0000500000-7f0000600000 rw-p 00000000 00:00 0 
7f0000600000-7f0080000000 ---p 00000000 00:00 0 
7ffd1c5f0000-7ffd1c5f4000 r--p 00000000 00:00 0                          [vvar]
7ffd1c5f4000-7ffd1c5f6000 r-xp 00000000 00:00 0                          [vdso]
";

    #[test]
    fn maps_keep_ranges_for_anonymous_pages() {
        let starts: Vec<u64> = private_ranges(MAPS).into_iter().map(|r| r.start).collect();
        assert_eq!(starts, [0x55d0_c0a0_0000, 0x55d0_c0a0_3000, 0x55d0_c1a0_0000, 0x7f00_0050_0000]);
    }

    #[test]
    fn status_distinguishes_kernel_threads() {
        let s = status("Name:\tbash\nVmLck:\t      64 kB\nRssAnon:\t     156 kB\n");
        assert_eq!(
            s,
            Status { name: "bash".into(), anonymous_bytes: Some(156 << 10), locked_bytes: 64 << 10 }
        );
        assert_eq!(status("Name:\tkswapd0\n").anonymous_bytes, None);
        assert!(is_ours("eke-agent") && is_ours("eke") && !is_ours("ekeko"));
    }

    #[test]
    fn smaps_names_the_pinned() {
        let text = "1000-2000 rw-p 00000000 00:00 0 [heap]\nRss:  4 kB\nVmFlags: rd wr mr lo\n3000-4000 rw-p 00000000 00:00 0\nVmFlags: rd wr ac\n";
        assert_eq!(pinned_ranges(text), vec![Range { start: 0x1000, end: 0x2000 }]);
    }

    #[test]
    fn pagemap_bits() {
        assert!(PagemapEntry(1 << 63 | 1 << 56 | 0x1234).is_private_anonymous());
        assert!(PagemapEntry(1 << 63 | 1 << 56).is_exclusive());
        for bit in [61, 62] {
            assert!(!PagemapEntry(1 << 63 | 1 << bit).is_private_anonymous(), "{bit}");
        }
        assert!(!PagemapEntry(0).is_private_anonymous());
    }

    #[test]
    fn contents() {
        assert_eq!(content(&[0; 4096]), Content::Zero);
        assert_eq!(content(&[7; 4096]), Content::SameFilled);
        let mut page = [0; 4096];
        page[4095] = 1;
        assert_eq!(content(&page), Content::Mixed);
        assert_eq!(content(&[]), Content::Mixed);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parsers_panic(text in "[0-9a-f -]{0,40}[\\x00-\\x7f]{0,200}") {
            let _ = (status(&text), private_ranges(&text), pinned_ranges(&text));
        }

        #[test]
        fn ranges_are_never_empty(lines in proptest::collection::vec("[0-9a-f]{1,17}-[0-9a-f]{1,17} [r-][w-][x-][ps] 0 0:0 0", 0..8)) {
            proptest::prop_assert!(private_ranges(&lines.join("\n")).iter().all(|r| r.start < r.end));
        }
    }
}
