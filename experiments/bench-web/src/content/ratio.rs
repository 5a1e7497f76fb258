//! How content packs: LZ4, in blocks of 64 KiB, as eke's store keeps it. Pure but for [`of_head`].

use std::io::{self, Read};
use std::path::Path;

/// The store's block.
const BLOCK: usize = 64 << 10;
/// One block of so many is packed to know the ratio.
const ONE_OF: u64 = 4;

/// Packs some of what it is given.
#[derive(Debug, Default)]
pub struct Meter {
    block: Vec<u8>,
    packed: Vec<u8>,
    seen: u64,
    raw_bytes: u64,
    packed_bytes: u64,
}

impl Meter {
    /// The next bytes.
    pub fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (head, rest) = bytes.split_at(bytes.len().min(BLOCK - self.block.len()));
            self.block.extend_from_slice(head);
            bytes = rest;
            if self.block.len() == BLOCK {
                self.measure();
            }
        }
    }

    /// The file is over: its last block is shorter.
    pub fn end_of_file(&mut self) {
        self.block.clear();
    }

    fn measure(&mut self) {
        if self.seen % ONE_OF == 0 {
            self.packed.resize(lz4_flex::block::get_maximum_output_size(BLOCK), 0);
            let packed = lz4_flex::block::compress_into(&self.block, &mut self.packed).unwrap_or(BLOCK);
            self.raw_bytes += BLOCK as u64;
            self.packed_bytes += packed.min(BLOCK) as u64;
        }
        self.seen += 1;
        self.block.clear();
    }

    /// Bytes for each packed byte; 1 of nothing.
    pub fn ratio(&self) -> f64 {
        if self.packed_bytes == 0 { 1.0 } else { self.raw_bytes as f64 / self.packed_bytes as f64 }
    }
}

/// The ratio of a file's first bytes.
///
/// # Errors
/// The file cannot be read.
pub fn of_head(path: &Path) -> io::Result<f64> {
    let mut head = Vec::new();
    std::fs::File::open(path)?.take(BLOCK as u64).read_to_end(&mut head)?;
    let packed = lz4_flex::block::compress(&head).len();
    Ok(head.len() as f64 / packed.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use eke_bench_core::random::number;

    #[test]
    fn noise_does_not_pack_and_text_does() {
        let (mut noise, mut text) = (Meter::default(), Meter::default());
        let random: Vec<u8> = (0..40_000).flat_map(|i| number(1, i).to_le_bytes()).collect();
        random.chunks(1000).for_each(|piece| noise.add(piece));
        text.add(&b"a sentence of words, and again words. ".repeat(10_000));
        assert!((0.99..=1.0).contains(&noise.ratio()), "{}", noise.ratio());
        assert!(text.ratio() > 10.0, "{}", text.ratio());
        assert!((Meter::default().ratio() - 1.0).abs() < f64::EPSILON);
    }
}
