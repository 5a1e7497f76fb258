//! What a thread needs to pack and unpack.

use crate::block::Form;
use crate::codec::{Codec, Engine, Lz4, Packed, Unreadable, looks_compressible};
use crate::error::OutOfMemory;
use crate::spec::StoreSpec;

/// One thread's engines and buffers. Made by [`crate::Store::scratch`], for that store.
pub struct Scratch {
    fast: Box<dyn Engine>,
    dense: Option<Box<dyn Engine>>,
    /// For the probe before a fast codec that does not give up early.
    probe: Option<Box<dyn Engine>>,
    packed: Packed,
    /// Room to unpack a block that is to be packed again.
    pub(crate) raw: Vec<u8>,
}

/// The probe's sample, packed, with room to spare.
const PROBE_ROOM: usize = 8 << 10;

impl Scratch {
    /// Room for `blocks` packed blocks at once.
    pub(crate) fn new(spec: &StoreSpec, blocks: usize) -> Result<Self, OutOfMemory> {
        let bound = spec
            .dense
            .iter()
            .map(|c| c.bound(spec.block_size))
            .fold(spec.fast.bound(spec.block_size), usize::max);
        Ok(Self {
            fast: spec.fast.engine()?,
            dense: spec.dense.as_ref().map(|codec| codec.engine()).transpose()?,
            probe: if spec.fast.gives_up_early() { None } else { Some(Lz4.engine()?) },
            packed: Packed::with_room((bound * blocks).max(PROBE_ROOM), blocks)?,
            raw: Vec::new(),
        })
    }

    /// Packs blocks as they come in.
    pub(crate) fn pack(&mut self, blocks: &[&[u8]]) -> &Packed {
        self.packed.clear();
        self.fast.compress_batch(blocks, &mut self.packed);
        &self.packed
    }

    /// Is it worth the fast codec's time?
    pub(crate) fn passes_probe(&mut self, block: &[u8]) -> bool {
        let packed = &mut self.packed;
        self.probe.as_mut().is_none_or(|engine| looks_compressible(engine.as_mut(), block, packed))
    }

    /// Packs what stays; `None`: there is no dense codec, or it could not.
    pub(crate) fn pack_dense(&mut self, len: usize) -> Option<&[u8]> {
        self.packed.clear();
        self.dense.as_mut()?.compress_batch(&[self.raw.get(..len)?], &mut self.packed);
        self.packed.get(0)
    }

    /// Unpacks a block by its form.
    pub(crate) fn unpack(&mut self, form: Form, packed: &[u8], out: &mut [u8]) -> Result<(), Unreadable> {
        match form {
            Form::Zero => out.fill(0),
            Form::Raw if packed.len() == out.len() => out.copy_from_slice(packed),
            Form::Raw => return Err(Unreadable),
            Form::Fast => self.fast.decompress(packed, out)?,
            Form::Dense => self.dense.as_mut().ok_or(Unreadable)?.decompress(packed, out)?,
        }
        Ok(())
    }
}
