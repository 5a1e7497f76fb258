//! The compression ratio of content: LZ4 in blocks of 64 KiB, as in eke's store. Pure except [`of_head`].

use std::io::{self, Read};
use std::path::Path;

/// The store's block size.
const BLOCK: usize = 64 << 10;
/// One of so many blocks is compressed to measure the ratio.
const ONE_OF: u64 = 4;

/// Measures the ratio of bytes by compressing samples.
#[derive(Debug, Default)]
pub struct Meter {
    block: Vec<u8>,
    compressed: Vec<u8>,
    blocks: u64,
    raw_bytes: u64,
    compressed_bytes: u64,
}

impl Meter {
    /// Adds the next bytes.
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

    /// Ends a file. Its last, shorter block is not measured.
    pub fn end_of_file(&mut self) {
        self.block.clear();
    }

    fn measure(&mut self) {
        if self.blocks % ONE_OF == 0 {
            self.compressed.resize(lz4_flex::block::get_maximum_output_size(BLOCK), 0);
            let len = lz4_flex::block::compress_into(&self.block, &mut self.compressed).unwrap_or(BLOCK);
            self.raw_bytes += BLOCK as u64;
            self.compressed_bytes += len.min(BLOCK) as u64;
        }
        self.blocks += 1;
        self.block.clear();
    }

    /// The compression ratio; 1 without any block.
    pub fn ratio(&self) -> f64 {
        if self.compressed_bytes == 0 { 1.0 } else { self.raw_bytes as f64 / self.compressed_bytes as f64 }
    }
}

/// The ratio of a file's first bytes.
///
/// # Errors
/// The file cannot be read.
pub fn of_head(path: &Path) -> io::Result<f64> {
    let mut head = Vec::new();
    std::fs::File::open(path)?.take(BLOCK as u64).read_to_end(&mut head)?;
    let compressed = lz4_flex::block::compress(&head).len();
    Ok(head.len() as f64 / compressed.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use eke_statistics::random::at;

    #[test]
    fn text_compresses_and_noise_does_not() {
        let (mut noise, mut text) = (Meter::default(), Meter::default());
        let random: Vec<u8> = (0..40_000).flat_map(|i| at(1, i).to_le_bytes()).collect();
        random.chunks(1000).for_each(|piece| noise.add(piece));
        text.add(&b"a sentence of words, and again words. ".repeat(10_000));
        assert!((0.99..=1.0).contains(&noise.ratio()), "{}", noise.ratio());
        assert!(text.ratio() > 10.0, "{}", text.ratio());
        assert!((Meter::default().ratio() - 1.0).abs() < f64::EPSILON);
    }
}
