//! Recorded traces, parsed from text.
//!
//! There are two formats. The first line decides which; empty lines and lines that begin with # are ignored.
//! - `4711 24576`: a key and its compressed size in bytes, as [`eke_cache_replay::parse`] reads it
//! - `1048576,65536`: an offset and a length in bytes on one disk or in one file, as `blkparse -f "%S,%N\n"` or another tool prints
//!   them (offsets in bytes). Each touched block of 64 KiB is a request. Compressed sizes are unknown, so each weighs 64 KiB. A heading
//!   line (`offset,size`) is skipped.

use std::path::{Path, PathBuf};

use eke_cache_replay::{BadLine, Request};
use eke_model::units::Bytes;

use super::BLOCK;
use super::laws::Trace;

/// The most bytes of text.
const LONGEST: u64 = 1 << 30;
/// The most requests: one line can touch any number of blocks.
const MOST_REQUESTS: usize = 64 << 20;

/// Why a file is no trace.
#[derive(Debug, thiserror::Error)]
pub enum NotATrace {
    /// The file cannot be read.
    #[error("{0}")]
    Unreadable(#[from] std::io::Error),
    /// The file is too long.
    #[error("it has {0}; a trace may have at most {max}", max = Bytes(LONGEST))]
    TooLong(Bytes),
    /// The file is not text.
    #[error("it is not text")]
    NotText,
    /// A line is not a key and a weight.
    #[error("{0}")]
    Line(#[from] BadLine),
    /// A line is not an offset and a length.
    #[error("line {line} is \"{text}\": give an offset and a length in bytes, as in \"1048576,65536\"")]
    Csv {
        /// The line's number, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// The lengths are larger than any disk.
    #[error("it requests more than {MOST_REQUESTS} blocks of 64 KiB")]
    TooMany,
    /// The file has no request.
    #[error("it has no request")]
    Empty,
}

/// Reads a file's trace. The trace has the file's name.
///
/// # Errors
/// The file is not a trace; the error has its path.
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

/// Parses the requests of either format.
///
/// # Errors
/// A line is not a request, or there is none.
pub fn parse(text: &str) -> Result<Vec<Request>, NotATrace> {
    let is_csv = content_lines(text).next().is_some_and(|(_, line)| line.contains(','));
    let requests = if is_csv { csv(text)? } else { eke_cache_replay::parse(text)? };
    if requests.is_empty() { Err(NotATrace::Empty) } else { Ok(requests) }
}

/// The lines that are neither empty nor comments, with their numbers from 1.
fn content_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().zip(1..).map(|(line, number)| (number, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

fn csv(text: &str) -> Result<Vec<Request>, NotATrace> {
    let mut requests = Vec::new();
    let is_title = |line: &str| line.starts_with(|c: char| c.is_ascii_alphabetic());
    for (index, (number, line)) in content_lines(text).enumerate() {
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
    fn a_text_that_is_no_trace_is_refused_with_the_reason() {
        for (text, part) in [
            ("", "no request"),
            ("offset,size\n", "no request"),
            ("0,1\noffset,size\n", "line 2"),
            ("0,-1", "line 1"),
            ("18446744073709551615,2", "line 1"),
            ("0,9000000000000000000", "more than"),
            ("7 seven", "line 1"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_trace_or_a_refusal(text in "[0-9a-z,# \n-]{0,60}") {
            let _ = parse(&text);
        }
    }
}
