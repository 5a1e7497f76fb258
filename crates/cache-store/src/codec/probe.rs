//! Whether a block is worth compressing.

use super::{Compressed, Engine};

/// Compression must save at least this share of the block; otherwise the saved memory does not justify decompressing at
/// every hit. OpenZFS uses the same limit (`zio_compress_data`: 12.5 %).
const SAVES_ONE_IN: usize = 8;

/// How much of a block is tried before a slow codec gets it, in bytes.
const SAMPLE: usize = 4096;

/// True if `compressed` bytes for `raw` bytes save enough.
pub(crate) const fn pays(raw: usize, compressed: usize) -> bool {
    compressed <= raw - raw / SAVES_ONE_IN
}

/// True if a sample from the middle of `block` shrinks with a fast engine. Called before a slow codec gets the whole block,
/// as in OpenZFS before zstd ("early abort": LZ4 first). `scratch` needs room for one sample; it is cleared.
pub fn sample_compresses(fast: &mut dyn Engine, block: &[u8], scratch: &mut Compressed) -> bool {
    let len = block.len().min(SAMPLE);
    let start = (block.len() - len) / 2;
    scratch.clear();
    fast.compress_batch(&[&block[start..start + len]], scratch);
    let compressed = scratch.get(0).map_or(len, <[u8]>::len);
    scratch.clear();
    compressed + compressed / 32 < len
}

#[cfg(test)]
mod tests {
    use super::super::{Codec, Lz4};
    use super::*;

    #[test]
    fn an_eighth_must_be_saved() {
        assert!(pays(65536, 57344) && !pays(65536, 57345));
        assert!(!pays(1, 2) && pays(0, 0));
    }

    #[test]
    fn the_probe_distinguishes_text_from_noise() {
        let (mut engine, mut scratch) = (Lz4.engine().unwrap(), Compressed::with_room(8192, 1).unwrap());
        let mut noise = vec![0; 65536];
        fastrand::Rng::with_seed(1).fill(&mut noise);
        let text = b"a supply that is small should last. ".repeat(2000);
        assert!(sample_compresses(engine.as_mut(), &text, &mut scratch));
        assert!(!sample_compresses(engine.as_mut(), &noise, &mut scratch));
        assert!(!sample_compresses(engine.as_mut(), b"", &mut scratch));
    }
}
