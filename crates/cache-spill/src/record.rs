//! A block in a segment: a head of 48 bytes, then the stored bytes. All numbers are little-endian.
//!
//! | at | bytes | |
//! | --- | --- | --- |
//! | 0 | 4 | `ekeB` |
//! | 4 | 4 | the form's number |
//! | 8 | 4 | length in the file |
//! | 12 | 4 | length here |
//! | 16 | 8 | number of the segment |
//! | 24 | 16 | the key: file, block |
//! | 40 | 8 | checksum of form, length in the file, key and bytes |

use eke_cache_store::{CompressedBlock, FileId, Form, Key};

/// The bytes before a block's own.
pub const HEAD: usize = 48;

const MAGIC: [u8; 4] = *b"ekeB";

/// Appends a block that belongs to segment `number`.
pub fn append(out: &mut Vec<u8>, number: u64, block: &CompressedBlock<'_>) {
    out.extend(MAGIC);
    out.extend(u32::from(block.form.code()).to_le_bytes());
    out.extend((block.raw_len as u32).to_le_bytes());
    out.extend((block.compressed.len() as u32).to_le_bytes());
    for word in [number, block.key.file.0, block.key.block, block.sum] {
        out.extend(word.to_le_bytes());
    }
    out.extend(block.compressed);
}

/// The segment's number and the block in `bytes`, which must be all of it. `None`: they are no block, or the sum is wrong.
pub fn parse(bytes: &[u8]) -> Option<(u64, CompressedBlock<'_>)> {
    let (head, compressed) = bytes.split_at_checked(HEAD)?;
    let small = |at: usize| Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?));
    let large = |at: usize| Some(u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?));
    if head.get(..4)? != MAGIC || small(12)? as usize != compressed.len() {
        return None;
    }
    let block = CompressedBlock {
        key: Key::new(FileId(large(24)?), large(32)?),
        form: Form::of_code(u8::try_from(small(4)?).ok()?)?,
        raw_len: small(8)? as usize,
        sum: large(40)?,
        compressed,
    };
    block.is_whole().then_some((large(16)?, block))
}
