//! Recorded traces, from text.
//!
//! Two formats, told apart by the first line that is meant (empty lines and those that begin with # are not):
//! - `4711 24576`: a key and what it weighs in bytes when it is packed, as [`eke_cache_replay::parse`] reads it
//! - `1048576,65536`: an offset and a length in bytes on one disk or in one file, as `blkparse -f "%S,%N\n"` or any other
//!   tool gives them (offsets in bytes); each block of 64 KiB that is touched is a request. How they compress is not known, so each
//!   weighs 64 KiB. A first line of words (`offset,size`) is passed over.

use std::path::{Path, PathBuf};

use eke_cache_replay::{BadLine, Request};
use eke_model::units::Bytes;

use super::BLOCK;
use super::laws::Trace;

/// More text than this is refused.
const LONGEST: u64 = 1 << 30;
/// And more requests: one line can touch any number of blocks.
const MOST_REQUESTS: usize = 64 << 20;

/// Why a file is no trace.
#[derive(Debug, thiserror::Error)]
pub enum NotATrace {
    /// The kernel's answer.
    #[error("{0}")]
    Unreadable(#[from] std::io::Error),
    /// More than any trace has.
    #[error("it has {0}; a trace of up to {max} is read", max = Bytes(LONGEST))]
    TooLong(Bytes),
    /// Not text.
    #[error("it is not text")]
    NotText,
    /// A line of keys and weights.
    #[error("{0}")]
    Line(#[from] BadLine),
    /// A line of offsets and lengths.
    #[error("line {line} is \"{text}\": give an offset and a length in bytes, as in \"1048576,65536\"")]
    Csv {
        /// From 1.
        line: usize,
        /// As it is there.
        text: String,
    },
    /// Lengths that no disk has.
    #[error("it asks for more than {MOST_REQUESTS} blocks of 64 KiB")]
    TooMany,
    /// Nothing at all.
    #[error("there is no request in it")]
    Empty,
}

/// A file's trace, named as the file is.
///
/// # Errors
/// With the file's path.
pub fn read(path: &Path) -> Result<Trace, (PathBuf, NotATrace)> {
    let name =
        path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
    let requests = text(path).and_then(|text| parse(&text)).map_err(|why| (path.to_owned(), why))?;
    Ok(Trace { name, requests })
}

fn text(path: &Path) -> Result<String, NotATrace> {
    let len = std::fs::metadata(path)?.len();
    if len > LONGEST {
        return Err(NotATrace::TooLong(Bytes(len)));
    }
    String::from_utf8(std::fs::read(path)?).map_err(|_| NotATrace::NotText)
}

/// The requests of either format.
///
/// # Errors
/// At the first line that is none, or if there is nothing.
pub fn parse(text: &str) -> Result<Vec<Request>, NotATrace> {
    let is_csv = meant(text).next().is_some_and(|(_, line)| line.contains(','));
    let requests = if is_csv { csv(text)? } else { eke_cache_replay::parse(text)? };
    if requests.is_empty() { Err(NotATrace::Empty) } else { Ok(requests) }
}

fn meant(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().zip(1..).map(|(line, number)| (number, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

fn csv(text: &str) -> Result<Vec<Request>, NotATrace> {
    let mut requests = Vec::new();
    let is_title = |line: &str| line.starts_with(|c: char| c.is_ascii_alphabetic());
    for (index, (number, line)) in meant(text).enumerate() {
        if index == 0 && is_title(line) {
            continue;
        }
        let bad = || NotATrace::Csv { line: number, text: line.to_owned() };
        let blocks = touched(line).ok_or_else(bad)?;
        if blocks.end - blocks.start > (MOST_REQUESTS - requests.len()) as u64 {
            return Err(NotATrace::TooMany);
        }
        requests.extend(blocks.map(|key| Request { key, weight: BLOCK }));
    }
    Ok(requests)
}

/// The blocks that a line touches.
fn touched(line: &str) -> Option<std::ops::Range<u64>> {
    let (offset, len) = line.split_once(',')?;
    let (offset, len): (u64, u64) = (offset.trim().parse().ok()?, len.trim().parse().ok()?);
    let end = offset.checked_add(len)?.div_ceil(u64::from(BLOCK));
    Some(offset / u64::from(BLOCK)..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_become_blocks() {
        let keys = |text| parse(text).unwrap().iter().map(|r| (r.key, r.weight)).collect::<Vec<_>>();
        assert_eq!(
            keys("# a disk\noffset,size\n65535,2\n131072, 65536\n"),
            [(0, BLOCK), (1, BLOCK), (2, BLOCK)]
        );
        assert_eq!(keys("12 4096\n"), [(12, 4096)]);
    }

    #[test]
    fn what_is_no_trace_says_why() {
        for (text, part) in [
            ("", "no request"),
            ("offset,size\n", "no request"),
            ("0,1\noffset,size\n", "line 2"),
            ("0,-1", "line 1"),
            ("18446744073709551615,2", "line 1"),
            ("0,9000000000000000000", "more than"),
            ("7 seven", "line 1"),
        ] {
            let said = parse(text).unwrap_err().to_string();
            assert!(said.contains(part), "{text}: {said}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_trace_or_a_refusal(text in "[0-9a-z,# \n-]{0,60}") {
            let _ = parse(&text);
        }
    }
}
