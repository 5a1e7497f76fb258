//! The engines and buffers of one thread.

use crate::block::Form;
use crate::codec::{Codec, Compressed, Engine, Lz4, Unreadable, sample_compresses};
use crate::error::OutOfMemory;
use crate::spec::StoreSpec;

/// One thread's engines and buffers for one store, made by [`crate::Store::scratch`].
pub struct Scratch {
    fast: Box<dyn Engine>,
    high_ratio: Option<Box<dyn Engine>>,
    /// For the probe, if the fast codec does not give up early.
    probe: Option<Box<dyn Engine>>,
    compressed: Compressed,
    /// Room to decompress a block that is to be recompressed.
    pub(crate) raw: Vec<u8>,
}

/// Room for the compressed sample of the probe, in bytes.
const PROBE_ROOM: usize = 8 << 10;

impl Scratch {
    /// Room for `blocks` compressed blocks at once.
    pub(crate) fn new(spec: &StoreSpec, blocks: usize) -> Result<Self, OutOfMemory> {
        let bound = spec
            .high_ratio
            .iter()
            .map(|c| c.bound(spec.block_size))
            .fold(spec.fast.bound(spec.block_size), usize::max);
        Ok(Self {
            fast: spec.fast.engine()?,
            high_ratio: spec.high_ratio.as_ref().map(|codec| codec.engine()).transpose()?,
            probe: if spec.fast.gives_up_early() { None } else { Some(Lz4.engine()?) },
            compressed: Compressed::with_room((bound * blocks).max(PROBE_ROOM), blocks)?,
            raw: Vec::new(),
        })
    }

    /// Compresses blocks with the fast codec.
    pub(crate) fn compress(&mut self, blocks: &[&[u8]]) -> &Compressed {
        self.compressed.clear();
        self.fast.compress_batch(blocks, &mut self.compressed);
        &self.compressed
    }

    /// True if the block should get the fast codec's time.
    pub(crate) fn passes_probe(&mut self, block: &[u8]) -> bool {
        let compressed = &mut self.compressed;
        self.probe.as_mut().is_none_or(|engine| sample_compresses(engine.as_mut(), block, compressed))
    }

    /// Compresses the first `len` bytes of `raw` with the high-ratio codec. `None`: there is no such codec, or it failed.
    pub(crate) fn recompress(&mut self, len: usize) -> Option<&[u8]> {
        self.compressed.clear();
        self.high_ratio.as_mut()?.compress_batch(&[self.raw.get(..len)?], &mut self.compressed);
        self.compressed.get(0)
    }

    /// Decompresses a block by its form.
    pub(crate) fn decompress(
        &mut self,
        form: Form,
        compressed: &[u8],
        out: &mut [u8],
    ) -> Result<(), Unreadable> {
        match form {
            Form::Zero => out.fill(0),
            Form::Raw if compressed.len() == out.len() => out.copy_from_slice(compressed),
            Form::Raw => return Err(Unreadable),
            Form::Fast => self.fast.decompress(compressed, out)?,
            Form::Recompressed => self.high_ratio.as_mut().ok_or(Unreadable)?.decompress(compressed, out)?,
        }
        Ok(())
    }
}
