//! The list of what was hot, as text: names and ranges, no content.
//!
//! ```text
//! eke hot list 1
//! of /srv/www at /srv/www
//! blocks of 65536
//! 3 0-15,32-40 img/logo\040large.png
//! ```
//! After the head, each line has a heat (3: the hottest), ranges of blocks (first and last), and a path below the directory. Bytes of a path
//! other than visible ASCII are octal escapes, as in `/proc/self/mountinfo`. The order is that in which it should be read.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// The first line. Another version has another number and is not read.
const HEAD: &str = "eke hot list 1";
/// No file is longer, in bytes. Sums and products of offsets stay far below the largest number.
const LONGEST_FILE: u64 = 1 << 56;
/// Block sizes in bytes that make sense.
const BLOCK_SIZES: std::ops::RangeInclusive<u64> = 512..=1 << 30;
/// The hottest.
pub const HOTTEST: u8 = 3;

/// What was hot in one mount.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HotList {
    /// The backing directory.
    pub dir: PathBuf,
    /// The mount point.
    pub place: PathBuf,
    /// The size of a block in bytes.
    pub block_size: u64,
    /// Parts of files, in the order in which they should be read.
    pub parts: Vec<HotPart>,
}

/// Blocks of one file that were equally hot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HotPart {
    /// From 0 to [`HOTTEST`].
    pub heat: u8,
    /// The file, below the backing directory.
    pub path: PathBuf,
    /// Numbers of blocks, ascending, without overlap. Never empty.
    pub blocks: Vec<Range<u64>>,
}

impl HotPart {
    /// The number of blocks.
    pub fn count(&self) -> u64 {
        self.blocks.iter().map(|range| range.end - range.start).sum()
    }

    /// The part as a line.
    pub fn line(&self) -> String {
        let mut line = format!("{} ", self.heat);
        for (at, range) in self.blocks.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let _ = write!(line, "{comma}{}-{}", range.start, range.end - 1);
        }
        line + " " + &escaped(&self.path) + "\n"
    }
}

impl HotList {
    /// All bytes of its blocks.
    pub fn bytes(&self) -> u64 {
        let blocks: u64 = self.parts.iter().map(HotPart::count).fold(0, u64::saturating_add);
        blocks.saturating_mul(self.block_size)
    }

    /// The list as text.
    pub fn text(&self) -> String {
        let (dir, place) = (escaped(&self.dir), escaped(&self.place));
        let mut text = format!("{HEAD}\nof {dir} at {place}\nblocks of {}\n", self.block_size);
        self.parts.iter().for_each(|part| text += &part.line());
        text
    }
}

/// Parses the text of a list. Lines that make no sense are left out: it is a hint. `None`: it is no list, or of another version.
pub fn parse(text: &str) -> Option<HotList> {
    let mut lines = text.lines();
    lines.next().filter(|head| *head == HEAD)?;
    let (dir, place) = lines.next()?.strip_prefix("of ")?.split_once(" at ")?;
    let block_size = lines.next()?.strip_prefix("blocks of ")?.parse().ok()?;
    BLOCK_SIZES.contains(&block_size).then_some(())?;
    let (dir, place) = (unescaped(dir)?, unescaped(place)?);
    Some(HotList {
        dir,
        place,
        block_size,
        parts: lines.filter_map(|line| part(line, LONGEST_FILE / block_size)).collect(),
    })
}

/// One part, whose blocks have numbers below `most`.
fn part(line: &str, most: u64) -> Option<HotPart> {
    let mut words = line.split(' ');
    let (heat, ranges, path) = (words.next()?, words.next()?, words.next()?);
    let heat = heat.parse().ok().filter(|heat| *heat <= HOTTEST && words.next().is_none())?;
    let path = unescaped(path).filter(|path| is_inside(path))?;
    let mut blocks = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-')?;
        let range: Range<u64> = first.parse().ok()?..last.parse::<u64>().ok()?.checked_add(1)?;
        let after: u64 = blocks.last().map_or(0, |before: &Range<u64>| before.end);
        if range.start < after || range.start >= range.end || range.end > most {
            return None;
        }
        blocks.push(range);
    }
    Some(HotPart { heat, path, blocks })
}

/// A relative path without `..`.
fn is_inside(path: &Path) -> bool {
    let mut parts = path.components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

fn escaped(path: &Path) -> String {
    let mut text = String::new();
    for byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_graphic() && *byte != b'\\' {
            text.push(char::from(*byte));
        } else {
            let _ = write!(text, "\\{byte:03o}");
        }
    }
    text
}

fn unescaped(text: &str) -> Option<PathBuf> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'\\' {
            let digits = rest.get(..3).and_then(|digits| std::str::from_utf8(digits).ok())?;
            bytes.push(u8::from_str_radix(digits, 8).ok().filter(|byte| *byte != 0)?);
            rest = &rest[3..];
        } else {
            bytes.push(*first);
        }
    }
    (!bytes.is_empty() && !bytes.contains(&0)).then(|| OsString::from_vec(bytes).into())
}

#[expect(clippy::single_range_in_vec_init, reason = "a list of ranges with one of them")]
#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    fn list(parts: Vec<HotPart>) -> HotList {
        HotList { dir: "/srv/a b".into(), place: "/srv/fast".into(), block_size: 65_536, parts }
    }

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let name = PathBuf::from(OsStr::from_bytes(b"img/logo large\n\xff\\.png"));
        let all = list(vec![
            HotPart { heat: 3, path: name, blocks: vec![0..16, 32..41] },
            HotPart { heat: 0, path: "a".into(), blocks: vec![7..8] },
        ]);
        let text = all.text();
        assert!(text.contains("\n3 0-15,32-40 img/logo\\040large\\012\\377\\134.png\n0 7-7 a\n"), "{text}");
        assert_eq!(parse(&text), Some(all.clone()));
        assert_eq!(all.bytes(), 26 * 65_536);
    }

    #[test]
    fn lines_that_make_no_sense_are_left_out() {
        let head = list(Vec::new()).text();
        for line in [
            "4 0-1 a",
            "3 1-0 a",
            "3 0-1,1-2 a",
            "3 0-1 ../etc/shadow",
            "3 0-1 /etc/shadow",
            "3 0-1 a/../b",
            "3 0-1 ",
            "3 0-1 a b",
            "3 0-1 a\\000",
            "3 0-1 a\\9",
            "3 0-18446744073709551615 a",
            "3 0-4503599627370495 a",
            "3 0-1",
            "",
        ] {
            let parts = parse(&format!("{head}{line}\n3 0-1 good\n")).unwrap().parts;
            assert_eq!(parts.len(), 1, "{line}");
        }
        for wrong in ["", "eke hot list 2\n", "eke hot list 1\nof a at b\nblocks of 0\n"] {
            assert_eq!(parse(wrong), None);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_path_comes_back(bytes in proptest::collection::vec(1u8.., 1..40)) {
            let path = PathBuf::from(OsStr::from_bytes(&bytes));
            proptest::prop_assert_eq!(unescaped(&escaped(&path)), Some(path));
        }
    }
}
