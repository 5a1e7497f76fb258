//! Compression in batches. A hardware engine, whose cost is per request and not per byte, can take the place of a codec.
//!
//! A [`Codec`] is shared and has no state. Each thread has an [`Engine`] with its tables and contexts.

mod compressed;
mod lz4;
mod probe;
mod zstd;

pub use compressed::Compressed;
pub use lz4::Lz4;
pub(crate) use probe::pays;
pub use probe::sample_compresses;
pub use zstd::Zstd;

use crate::error::OutOfMemory;

/// The compressed bytes do not decompress to the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the compressed bytes do not decompress to a block")]
pub struct Unreadable;

/// A compression method.
pub trait Codec: Send + Sync {
    /// Its name in tables.
    fn name(&self) -> &'static str;

    /// The most bytes that `len` bytes can become.
    fn bound(&self, len: usize) -> usize;

    /// True if incompressible data costs little. If not, a sample is tried with LZ4 first.
    fn gives_up_early(&self) -> bool;

    /// The tables that one thread needs.
    ///
    /// # Errors
    /// There is no memory for them.
    fn engine(&self) -> Result<Box<dyn Engine>, OutOfMemory>;
}

/// A codec's tables and contexts for one thread.
pub trait Engine: Send {
    /// Compresses each of `blocks`, in order, into `out`, which is empty and has room by [`Codec::bound`]. A block that
    /// cannot be compressed (no memory, no room) is [`Compressed::skip`]ped.
    fn compress_batch(&mut self, blocks: &[&[u8]], out: &mut Compressed);

    /// Decompresses one block into `out`, whose length is the block's.
    ///
    /// # Errors
    /// The bytes are not a block of that length.
    fn decompress(&mut self, compressed: &[u8], out: &mut [u8]) -> Result<(), Unreadable>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks() -> Vec<Vec<u8>> {
        let text = b"to eke out: to make a small supply last. ".repeat(1600);
        let noise: Vec<u8> = (0..65536u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        vec![text[..65536].to_vec(), noise, text[..1].to_vec(), text[..4097].to_vec()]
    }

    #[test]
    fn every_codec_decompresses_its_own_output_and_refuses_other_bytes() {
        for codec in [&Lz4 as &dyn Codec, &Zstd::level(1), &Zstd::level(3)] {
            let (mut engine, blocks) = (codec.engine().unwrap(), blocks());
            let slices: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
            let mut compressed =
                Compressed::with_room(slices.iter().map(|b| codec.bound(b.len())).sum(), slices.len())
                    .unwrap();
            engine.compress_batch(&slices, &mut compressed);
            for (index, block) in blocks.iter().enumerate() {
                let mut out = vec![0; block.len()];
                let bytes = compressed.get(index).expect("compressed");
                assert_eq!(engine.decompress(bytes, &mut out), Ok(()), "{} {index}", codec.name());
                assert!(out == *block, "{} {index}", codec.name());
                assert!(
                    engine.decompress(&bytes[..bytes.len() - 1], &mut out).is_err(),
                    "{} {index}",
                    codec.name()
                );
                assert!(
                    engine.decompress(bytes, &mut vec![0; block.len() + 1]).is_err(),
                    "{} {index}",
                    codec.name()
                );
                assert_eq!(
                    engine.decompress(bytes, &mut out),
                    Ok(()),
                    "after an error, {} {index}",
                    codec.name()
                );
            }
            assert!(compressed.get(0).unwrap().len() < 4096, "{}", codec.name());
        }
    }

    #[test]
    fn a_block_without_room_is_skipped_and_the_others_are_not() {
        for codec in [&Lz4 as &dyn Codec, &Zstd::level(1)] {
            let blocks = blocks();
            let mut compressed = Compressed::with_room(codec.bound(4097), 2).unwrap();
            codec.engine().unwrap().compress_batch(&[&blocks[1], &blocks[3]], &mut compressed);
            assert!(compressed.get(0).is_none() && compressed.get(1).is_some(), "{}", codec.name());
        }
    }
}
