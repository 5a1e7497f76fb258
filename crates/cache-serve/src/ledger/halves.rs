//! The two halves of a log's medium, and their records.

use std::io;

use eke_cachefs::node::Entry;

use super::medium::Medium;
use super::record::{RecordError, decode_borrowed};

/// Offsets of the halves. The first has room for more than any machine's memory; unwritten room takes no memory.
pub(super) const HALVES: [u64; 2] = [4096, 1 << 40];

/// The offset of the half with this generation.
pub(super) fn half(generation: u64) -> u64 {
    HALVES[side(generation)]
}

/// Which half that is.
pub(super) fn side(generation: u64) -> usize {
    usize::from(generation % 2 == 1)
}

/// Reads the records of a half from `from` to `to`, or to their end: each with its offset and its bytes. Returns where it ended, and the bad
/// record if one was the reason.
pub(super) fn read<M: Medium>(
    medium: &M,
    generation: u64,
    from: u64,
    to: u64,
    mut each: impl FnMut(u64, &[u8], Entry<'_>),
) -> io::Result<(u64, Option<RecordError>)> {
    /// Bytes read at a time: more than the longest record.
    const PIECE: usize = 1 << 20;
    let mut at = from;
    loop {
        let len = usize::try_from(to - at).unwrap_or(PIECE).min(PIECE);
        let bytes = medium.read_at(half(generation) + at, len)?;
        let (used, bad_record) =
            read_piece(&bytes, generation, |used, record, entry| each(at + used as u64, record, entry));
        at += used as u64;
        let more = bytes.len() == PIECE && used > 0;
        match bad_record {
            // Its rest may be in the next piece.
            Some(RecordError::Length(_)) if more => {}
            Some(bad_record) => return Ok((at, Some(bad_record))),
            None if more && used + 4 > bytes.len() => {}
            None => return Ok((at, None)),
        }
    }
}

fn read_piece(
    bytes: &[u8],
    generation: u64,
    mut each: impl FnMut(usize, &[u8], Entry<'_>),
) -> (usize, Option<RecordError>) {
    let mut used = 0;
    loop {
        match decode_borrowed(&bytes[used..], generation) {
            Ok(Some((entry, len))) => {
                each(used, &bytes[used..used + len], entry);
                used += len;
            }
            Ok(None) => return (used, None),
            Err(bad_record) => return (used, Some(bad_record)),
        }
    }
}
