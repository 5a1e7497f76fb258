//! The image and its volatile write cache.
//!
//! Writes go to the image at once; the replaced data are kept until the next flush. A power cut restores them, the
//! newest first. The cache is finite: beyond its size, the oldest writes count as durable.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use eke_model::units::Bytes;

/// An image with a volatile write cache.
#[derive(Debug)]
pub(super) struct Store {
    image: File,
    size: u64,
    cache: u64,
    replaced: VecDeque<Replaced>,
    replaced_bytes: u64,
}

#[derive(Debug)]
struct Replaced {
    offset: u64,
    bytes: Vec<u8>,
}

impl Store {
    /// `image` has `size`; at most `cache` bytes of writes can be lost.
    pub(super) fn new(image: File, size: Bytes, cache: Bytes) -> Self {
        Self { image, size: size.0, cache: cache.0, replaced: VecDeque::new(), replaced_bytes: 0 }
    }

    /// Reads the image; the result is shorter at the end of the device.
    pub(super) fn read(&self, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        let length = length.min(self.size.saturating_sub(offset));
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        self.image.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }

    /// Writes; the data are not durable before the next flush.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let end = offset.checked_add(bytes.len() as u64);
        if end.is_none_or(|end| end > self.size) {
            return Err(rustix::io::Errno::NOSPC.into());
        }
        let replaced = self.read(offset, bytes.len() as u64)?;
        self.image.write_all_at(bytes, offset)?;
        self.replaced_bytes += replaced.len() as u64;
        self.replaced.push_back(Replaced { offset, bytes: replaced });
        self.age();
        Ok(())
    }

    fn age(&mut self) {
        while self.replaced_bytes > self.cache {
            let Some(oldest) = self.replaced.pop_front() else { return };
            self.replaced_bytes -= oldest.bytes.len() as u64;
        }
    }

    /// Makes all written data durable.
    pub(super) fn flush(&mut self) {
        self.replaced.clear();
        self.replaced_bytes = 0;
    }

    /// Undoes unflushed writes; returns the number of lost bytes.
    pub(super) fn cut(&mut self) -> io::Result<Bytes> {
        let lost = Bytes(std::mem::take(&mut self.replaced_bytes));
        while let Some(newest) = self.replaced.pop_back() {
            self.image.write_all_at(&newest.bytes, newest.offset)?;
        }
        Ok(lost)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZE: u64 = 64;

    fn store(cache: u64) -> Store {
        let image = tempfile::tempfile().unwrap();
        image.set_len(SIZE).unwrap();
        Store::new(image, Bytes(SIZE), Bytes(cache))
    }

    #[test]
    fn overlapping_writes_come_back_in_the_right_order() {
        let mut s = store(1000);
        s.write(0, &[1; 8]).unwrap();
        s.flush();
        s.write(4, &[2; 8]).unwrap();
        s.write(2, &[3; 4]).unwrap();
        assert_eq!(s.read(0, 8).unwrap(), [1, 1, 3, 3, 3, 3, 2, 2]);
        assert_eq!(s.cut().unwrap(), Bytes(12));
        assert_eq!(s.read(0, 12).unwrap(), [1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn the_device_has_an_end() {
        let mut s = store(1000);
        assert_eq!(s.read(60, 8).unwrap().len(), 4);
        assert_eq!(s.read(64, 8).unwrap().len(), 0);
        assert!(s.write(60, &[1; 8]).is_err() && s.write(u64::MAX, &[1]).is_err());
    }

    proptest! {
        /// After a cut the image is as after the last flush, or as after a later write if the cache was too small.
        #[test]
        fn a_cut_leaves_a_prefix_of_the_writes_and_all_flushed_ones(
            writes in prop::collection::vec((0..SIZE - 8, 1..8usize, any::<u8>(), prop::bool::weighted(0.2)), 1..40),
            cache in 0..80u64,
        ) {
            let mut s = store(cache);
            let mut states = vec![s.read(0, SIZE).unwrap()];
            for (offset, length, byte, flush) in writes {
                s.write(offset, &vec![byte; length]).unwrap();
                let state = s.read(0, SIZE).unwrap();
                if flush {
                    s.flush();
                    states.clear();
                }
                states.push(state);
            }
            let at_risk = s.replaced.len();
            s.cut().unwrap();
            let after = s.read(0, SIZE).unwrap();
            prop_assert_eq!(&after, &states[states.len() - 1 - at_risk]);
        }
    }
}
