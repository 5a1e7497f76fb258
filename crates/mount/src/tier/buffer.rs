//! Memory for reads that go past the page cache: at a multiple of a page.

const ALIGN: usize = 4096;

/// Bytes that begin at a multiple of 4096. Grows, and never shrinks.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
}

impl Buffer {
    /// Room for `len` bytes, with anything in it; `None`: there is no memory.
    pub fn room(&mut self, len: usize) -> Option<&mut [u8]> {
        let needed = len.checked_add(ALIGN)?;
        if self.bytes.len() < needed {
            // What is there is not worth keeping.
            self.bytes = Vec::new();
            self.bytes.try_reserve_exact(needed).ok()?;
            self.bytes.resize(needed, 0);
        }
        let start = self.start();
        self.bytes.get_mut(start..start + len)
    }

    /// The first `len` bytes of what is there, to change.
    pub fn bytes_mut(&mut self, len: usize) -> &mut [u8] {
        let start = self.start();
        self.bytes.get_mut(start..start + len).unwrap_or_default()
    }

    /// The first `len` bytes of what is there.
    pub fn bytes(&self, len: usize) -> &[u8] {
        let start = self.start();
        self.bytes.get(start..start + len).unwrap_or_default()
    }

    fn start(&self) -> usize {
        self.bytes.as_ptr().addr().wrapping_neg() % ALIGN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_into_the_room_is_there() {
        let mut buffer = Buffer::default();
        for len in [0, 1, 4096, 100_000, 5000] {
            let room = buffer.room(len).unwrap();
            assert!(room.len() == len && room.as_ptr().addr() % ALIGN == 0);
            room.fill(7);
            assert_eq!(buffer.bytes(len), vec![7; len]);
        }
        assert!(buffer.room(usize::MAX / 2).is_none() && buffer.room(usize::MAX).is_none());
    }
}
