//! The form in which a block is stored, and its checksum.

use twox_hash::XxHash3_64;

use crate::Key;

/// How a block's bytes are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// All zero: no bytes are stored.
    Zero,
    /// Uncompressed, because it does not compress.
    Raw,
    /// Compressed by the fast codec when it was admitted.
    Fast,
    /// Recompressed by the high-ratio codec, because it stays.
    Recompressed,
}

impl Form {
    /// Its number in files.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The form with this number.
    pub fn of_code(code: u8) -> Option<Self> {
        [Self::Zero, Self::Raw, Self::Fast, Self::Recompressed].into_iter().find(|form| form.code() == code)
    }
}

/// The checksum of a block's stored bytes. Key, length and form are part of it, so a wrong table entry is found like a
/// flipped bit. It covers the compressed bytes because they are fewer, and no decoder gets corrupted ones.
pub(crate) fn checksum(key: Key, form: Form, raw_len: usize, compressed: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(key.hash() ^ (raw_len as u64) ^ ((form as u64) << 56), compressed)
}

/// True if the block is all zeros.
pub(crate) fn is_zero(block: &[u8]) -> bool {
    let mut lines = block.chunks_exact(64);
    // 64 bytes at a time: the compiler makes a few vector instructions of it, and most blocks differ in the first 64.
    let zero = |line: &[u8]| line.iter().fold(0, |all, byte| all | byte) == 0;
    lines.all(zero) && zero(block.chunks_exact(64).remainder())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileId;

    #[test]
    fn only_zeros_are_zero() {
        assert!(is_zero(&[]) && is_zero(&[0; 200]));
        for at in [0, 63, 64, 199] {
            let mut block = [0; 200];
            block[at] = 1;
            assert!(!is_zero(&block), "{at}");
        }
    }

    #[test]
    fn a_form_is_known_by_its_number() {
        let forms = [Form::Zero, Form::Raw, Form::Fast, Form::Recompressed];
        assert!(forms.iter().all(|form| Form::of_code(form.code()) == Some(*form)));
        assert_eq!(Form::of_code(4), None);
    }

    #[test]
    fn the_checksum_knows_the_block_and_not_only_its_bytes() {
        let key = |block| Key::new(FileId(1), block);
        let sum = checksum(key(1), Form::Fast, 4096, b"compressed");
        assert_eq!(sum, checksum(key(1), Form::Fast, 4096, b"compressed"));
        assert_ne!(sum, checksum(key(2), Form::Fast, 4096, b"compressed"));
        assert_ne!(sum, checksum(key(1), Form::Recompressed, 4096, b"compressed"));
        assert_ne!(sum, checksum(key(1), Form::Fast, 4095, b"compressed"));
        assert_ne!(sum, checksum(key(1), Form::Fast, 4096, b"Compressed"));
    }
}
