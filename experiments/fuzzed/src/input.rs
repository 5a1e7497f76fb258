//! Decodes numbers, texts and files from bytes.

use std::borrow::Cow;

/// The remaining bytes. Beyond their end, numbers are zero and texts are empty.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    pub fn u8(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.u8(), self.u8()])
    }

    pub fn u64(&mut self) -> u64 {
        (0..8).fold(0, |all, n| all | u64::from(self.u8()) << (8 * n))
    }

    /// Often small, often a limit, sometimes any number.
    pub fn i64(&mut self) -> i64 {
        match self.u8() {
            0 => i64::MIN,
            1 => i64::MAX,
            2..=6 => self.u64() as i64,
            small => i64::from(small) - 10,
        }
    }

    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    /// A piece with a length prefix of two bytes.
    pub fn piece(&mut self) -> &'a [u8] {
        let count = usize::from(self.u16());
        self.bytes(count)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The bytes as text.
pub fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Two texts, separated by the first 0.
pub fn two(bytes: &[u8]) -> (Cow<'_, str>, Cow<'_, str>) {
    let at = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    (text(&bytes[..at]), text(bytes.get(at + 1..).unwrap_or_default()))
}

/// A valid file with some bytes changed, to reach the code behind magic numbers and checksums. Each change has an
/// offset (two bytes), a length and data. If the first byte is odd, it gives the number of pages to keep.
pub fn patched(good: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut changes = Input(changes);
    let mut file = good.to_vec();
    let cut = changes.u8();
    if cut % 2 == 1 {
        file.truncate(usize::from(cut / 2) * 512);
    }
    while !changes.is_empty() && !file.is_empty() {
        let at = usize::from(changes.u16()) % file.len();
        let length = usize::from(changes.u8());
        for (place, byte) in file[at..].iter_mut().zip(changes.bytes(length)) {
            *place = *byte;
        }
    }
    file
}
