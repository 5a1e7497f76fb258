//! Zstandard.

use zstd::zstd_safe::{CCtx, DCtx, compress_bound};

use super::{Codec, Compressed, Engine, Unreadable};
use crate::error::OutOfMemory;

/// Zstandard at one level: recompresses the blocks that stay.
#[derive(Debug, Clone, Copy)]
pub struct Zstd {
    level: i32,
}

impl Zstd {
    /// A level as zstd counts them; negative levels are its fast ones. Out of range: the nearest level.
    pub fn level(level: i32) -> Self {
        Self { level: level.clamp(zstd::zstd_safe::min_c_level(), zstd::zstd_safe::max_c_level()) }
    }
}

/// A context is created at its first use, so a thread that only reads has no compression context (1 to 2 MiB for blocks of
/// 64 KiB). After an error it is dropped, because zstd does not define its state.
struct Contexts {
    level: i32,
    compress: Option<CCtx<'static>>,
    decompress: Option<DCtx<'static>>,
}

impl Codec for Zstd {
    fn name(&self) -> &'static str {
        "zstd"
    }

    fn bound(&self, len: usize) -> usize {
        compress_bound(len)
    }

    fn gives_up_early(&self) -> bool {
        false
    }

    fn engine(&self) -> Result<Box<dyn Engine>, OutOfMemory> {
        Ok(Box::new(Contexts { level: self.level, compress: None, decompress: None }))
    }
}

impl Contexts {
    fn compress(&mut self, block: &[u8], room: &mut [u8]) -> Option<usize> {
        let mut context = self.compress.take().or_else(CCtx::try_create)?;
        let len = context.compress(room, block, self.level).ok()?;
        self.compress = Some(context);
        Some(len)
    }
}

impl Engine for Contexts {
    fn compress_batch(&mut self, blocks: &[&[u8]], out: &mut Compressed) {
        for block in blocks {
            out.push_with(compress_bound(block.len()), |room| self.compress(block, room));
        }
    }

    fn decompress(&mut self, compressed: &[u8], out: &mut [u8]) -> Result<(), Unreadable> {
        let mut context = self.decompress.take().or_else(DCtx::try_create).ok_or(Unreadable)?;
        let len = context.decompress(out, compressed).map_err(|_| Unreadable)?;
        self.decompress = Some(context);
        if len == out.len() { Ok(()) } else { Err(Unreadable) }
    }
}
