//! A block as the engine stores it: a head of 92 bytes, then the stored bytes. All numbers are little-endian.
//!
//! | at | bytes | |
//! | --- | --- | --- |
//! | 0 | 4 | `ekeS` |
//! | 4 | 4 | the form's number |
//! | 8 | 4 | length in the file |
//! | 12 | 4 | length here |
//! | 16 | 68 | the name |
//! | 84 | 8 | checksum of all the rest |
//!
//! The checksum finds accidents. It finds no forgery: for that there is [`crate::seal`].

use eke_cache_store::Form;
use twox_hash::XxHash3_64;

use crate::key::{NAME, Name};

/// The bytes before a block's own.
pub const HEAD: usize = 92;

/// The most bytes of a value: the longest block as it is, with the longer of both heads.
pub const LONGEST: usize = (1 << 16) + 256;

const MAGIC: [u8; 4] = *b"ekeS";
const SUM: usize = 84;

/// A block without its name, as the store has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredBlock<'a> {
    /// How its bytes are stored.
    pub form: Form,
    /// Its length in the file.
    pub raw_len: usize,
    /// The stored bytes.
    pub compressed: &'a [u8],
}

impl StoredBlock<'_> {
    /// True if a block of this form can have these lengths.
    pub(crate) fn is_possible(&self) -> bool {
        let (raw, len) = (self.raw_len, self.compressed.len());
        let fits = match self.form {
            Form::Zero => len == 0,
            Form::Raw => len == raw,
            Form::Fast | Form::Recompressed => len > 0 && len <= raw,
        };
        raw > 0 && raw <= 1 << 16 && fits
    }
}

/// The block as bytes.
pub fn encode(name: &Name, block: &StoredBlock<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD + block.compressed.len());
    out.extend(MAGIC);
    out.extend(u32::from(block.form.code()).to_le_bytes());
    out.extend((block.raw_len as u32).to_le_bytes());
    out.extend((block.compressed.len() as u32).to_le_bytes());
    out.extend(name.bytes());
    out.extend(sum(&out, block.compressed).to_le_bytes());
    out.extend(block.compressed);
    out
}

/// The block in `bytes`, which must be all of it. `None`: they are no block, another one, or the sum is wrong.
pub fn decode<'b>(name: &Name, bytes: &'b [u8]) -> Option<StoredBlock<'b>> {
    let (head, compressed) = bytes.split_at_checked(HEAD)?;
    let small = |at: usize| Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?));
    let is_this = head.get(..4)? == MAGIC && head.get(16..16 + NAME)? == name.bytes();
    let found = u64::from_le_bytes(head.get(SUM..)?.try_into().ok()?);
    if !is_this || small(12)? as usize != compressed.len() || sum(head.get(..SUM)?, compressed) != found {
        return None;
    }
    let form = Form::of_code(u8::try_from(small(4)?).ok()?)?;
    let block = StoredBlock { form, raw_len: small(8)? as usize, compressed };
    block.is_possible().then_some(block)
}

fn sum(head: &[u8], compressed: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(XxHash3_64::oneshot(head), compressed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::tests_support::name;

    const BLOCK: StoredBlock<'_> =
        StoredBlock { form: Form::Fast, raw_len: 65_536, compressed: b"compressed bytes" };

    #[test]
    fn a_block_is_read_as_it_was_written() {
        let bytes = encode(&name(5), &BLOCK);
        assert_eq!((decode(&name(5), &bytes), bytes.len()), (Some(BLOCK), HEAD + 16));
        assert_eq!(decode(&name(6), &bytes), None, "it is another block");
    }

    #[test]
    fn no_flipped_bit_and_no_cut_is_believed() {
        let bytes = encode(&name(5), &BLOCK);
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_eq!(decode(&name(5), &other), None, "{at}");
            assert_eq!(decode(&name(5), &bytes[..at]), None, "{at}");
        }
    }

    #[test]
    fn impossible_lengths_are_refused() {
        for (form, raw_len, compressed) in [
            (Form::Fast, 65_537, &b"x"[..]),
            (Form::Fast, 0, b""),
            (Form::Fast, 1, b"xx"),
            (Form::Raw, 3, b"xx"),
            (Form::Zero, 3, b"x"),
        ] {
            let block = StoredBlock { form, raw_len, compressed };
            assert_eq!(decode(&name(1), &encode(&name(1), &block)), None, "{block:?}");
        }
        let zero = StoredBlock { form: Form::Zero, raw_len: 4096, compressed: b"" };
        assert_eq!(decode(&name(1), &encode(&name(1), &zero)), Some(zero));
    }
}
